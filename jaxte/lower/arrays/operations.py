"""Nodes that compute: views, elementwise operations, products, reductions, and arrays put together from parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.lang import dtypes
from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import ONE, Expr, Reducer
from jaxte.lang.operators import COMPARISONS, SELECT, Op
from jaxte.lower.arrays.node import ArrayError, Node, Shape, broadcast_shape, plus, same, same_shape
from jaxte.lower.arrays.steps import Step, shape_after


@dataclass(frozen=True, eq=False)
class View(Node):
    """The elements of an array in other places: a slice, zeros around it, another shape or order, copies."""

    array: Node
    step: Step

    @cached_property
    def shape(self) -> Shape:
        return shape_after(self.step, self.array.shape)

    @property
    def kind(self) -> Kind:
        return self.array.kind


@dataclass(frozen=True, eq=False)
class Broadcast(Node):
    """An array repeated to a shape."""

    array: Node
    extents: Shape

    @property
    def shape(self) -> Shape:
        return self.extents

    @property
    def kind(self) -> Kind:
        return self.array.kind


@dataclass(frozen=True, eq=False)
class Spread(Node):
    """``fill`` before, behind and between the elements of each dimension; a negative number cuts elements off."""

    array: Node
    fill: Node
    widths: tuple[tuple[Expr, Expr, int], ...]

    @cached_property
    def shape(self) -> Shape:
        found = []
        for extent, (before, behind, between) in zip(self.array.shape, self.widths, strict=True):
            inside = plus(extent, *[plus(extent, -1)] * between) if between else extent
            found.append(plus(inside, before, behind))
        return tuple(found)

    @property
    def kind(self) -> Kind:
        return self.array.kind


@dataclass(frozen=True, eq=False)
class Joined(Node):
    """Arrays one after the other along ``axis``."""

    parts: tuple[Node, ...]
    axis: int

    @cached_property
    def shape(self) -> Shape:
        first, axis = self.parts[0].shape, self.axis
        return (*first[:axis], plus(*(p.shape[axis] for p in self.parts)), *first[axis + 1 :])

    @property
    def kind(self) -> Kind:
        return dtypes.promote(p.kind for p in self.parts)


@dataclass(frozen=True, eq=False)
class Stacked(Node):
    """Arrays of one shape side by side along a dimension of their own."""

    parts: tuple[Node, ...]
    axis: int

    @cached_property
    def shape(self) -> Shape:
        first = self.parts[0].shape
        return (*first[: self.axis], plus(len(self.parts)), *first[self.axis :])

    @property
    def kind(self) -> Kind:
        return dtypes.promote(p.kind for p in self.parts)


# --- elementwise


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """An operation of the scalar table at every element."""

    op: Op
    args: tuple[Node, ...]

    @cached_property
    def shape(self) -> Shape:
        return broadcast_shape([a.shape for a in self.args])

    @cached_property
    def kind(self) -> Kind:
        args = self.args[1:] if self.op is SELECT else self.args
        if self.op in COMPARISONS or self.op.result == "bool":
            return "bool", False
        met = dtypes.promote(a.kind for a in args)
        if self.op.result == "inexact":
            return dtypes.to_inexact(met)
        return (dtypes.real_dtype(met[0]), met[1]) if self.op.result == "real" else met


@dataclass(frozen=True, eq=False)
class Cast(Node):
    """An array in another dtype."""

    array: Node
    own_dtype: str

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def kind(self) -> Kind:
        return self.own_dtype, False


# --- products and reductions


@dataclass(frozen=True, eq=False)
class Einsum(Node):
    """A sum of products; ``spec`` is that of ``jnp.einsum``, ``exact`` asks for products in full precision."""

    spec: str
    factors: tuple[Node, ...]
    exact: bool = False

    @cached_property
    def shape(self) -> Shape:
        inputs, _, out = self.spec.partition("->")
        found: dict[str, Expr] = {}
        for letters, factor in zip(inputs.split(","), self.factors, strict=True):
            for letter, extent in zip(letters, factor.shape, strict=True):
                if found.setdefault(letter, extent) is not extent and not same(found[letter], extent):
                    raise ArrayError(f"{self.spec}: {letter} is {found[letter]!r} and {extent!r}")
        return tuple(found[letter] for letter in out)

    @property
    def kind(self) -> Kind:
        return dtypes.promote(f.kind for f in self.factors)


@dataclass(frozen=True, eq=False)
class Reduced(Node):
    """A reduction of jnp ("sum", "prod", "max", "min", "any", "all") over ``axes``, by default over all of them.

    ``keep`` leaves them as dimensions of extent 1; ``own_dtype`` is what it is computed in where that is asked for; ``start`` what it
    begins with.
    """

    function: str
    array: Node
    axes: tuple[int, ...] | None
    own_dtype: str = ""
    start: Node | None = None
    keep: bool = False

    @cached_property
    def shape(self) -> Shape:
        gone = range(self.array.ndim) if self.axes is None else self.axes
        extents = enumerate(self.array.shape)
        if self.keep:
            return tuple(ONE if n in gone else e for n, e in extents)
        return tuple(e for n, e in extents if n not in gone)

    @property
    def kind(self) -> Kind:
        if self.own_dtype or self.function in ("any", "all"):
            return self.own_dtype or "bool", False
        return self.array.kind


@dataclass(frozen=True, eq=False)
class Position(Node):
    """The first position of the greatest ("argmax") or least element along ``axis``."""

    function: str
    array: Node
    axis: int

    @property
    def shape(self) -> Shape:
        own = self.array.shape
        return (*own[: self.axis], *own[self.axis + 1 :])

    @property
    def kind(self) -> Kind:
        return "int32", False


@dataclass(frozen=True, eq=False)
class Combined(Node):
    """Arrays reduced by any combiner over ``axes``: one array, or a tuple of as many as there are."""

    reducer: Reducer
    arrays: tuple[Node, ...]
    starts: tuple[Node, ...]
    axes: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        if len(self.arrays) > 1:
            raise ArrayError("a reduction of several arrays is a tuple")
        return self.item_shape

    @cached_property
    def item_shape(self) -> Shape:
        first = self.arrays[0].shape
        if any(not same_shape(a.shape, first) for a in self.arrays):
            raise ArrayError("arrays that are reduced together have one shape")
        return tuple(e for n, e in enumerate(first) if n not in self.axes)

    @property
    def kind(self) -> Kind:
        return self.arrays[0].kind


@dataclass(frozen=True, eq=False)
class Item(Node):
    """One array of a tuple of them."""

    values: Node
    position: int
    extents: Shape
    own_kind: Kind

    @property
    def shape(self) -> Shape:
        return self.extents

    @property
    def kind(self) -> Kind:
        return self.own_kind


# --- what changes no value


@dataclass(frozen=True, eq=False)
class Kept(Node):
    """An array that is not fused into what reads it ("barrier"), that a call keeps apart ("apart"), or without a tangent ("constant")."""

    array: Node
    how: str = "barrier"

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def kind(self) -> Kind:
        return self.array.kind

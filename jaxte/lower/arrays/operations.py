"""Nodes that compute: views, elementwise operations, products, reductions, and arrays put together from parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from jaxte.lang import dtypes
from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import ONE, Expr, Reducer
from jaxte.lang.operators import COMPARISONS, SELECT, Op
from jaxte.lower.arrays.node import ArrayError, Node, Shape, broadcast_shape, plus, same, same_shape, times
from jaxte.lower.arrays.steps import Step, shape_after
from jaxte.sets.affine import normal


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
        ndim = self.array.ndim
        gone = range(ndim) if self.axes is None else [n % ndim for n in self.axes]
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


@dataclass(frozen=True, eq=False)
class Fourier(Node):
    """A discrete Fourier transform: ``function`` is "fft" or, of real numbers, "rfft", or one of their inverses, of ``points`` in ``axes``."""

    function: str
    array: Node
    points: tuple[int, ...]
    axes: tuple[int, ...]

    @cached_property
    def shape(self) -> Shape:
        found = list(self.array.shape)
        for axis, count in zip(self.axes, self.points, strict=True):
            found[axis] = plus(count)
        if self.function == "rfft":
            found[self.axes[-1]] = plus(self.points[-1] // 2 + 1)
        return tuple(found)

    @property
    def kind(self) -> Kind:
        own = self.array.dtype
        if self.function == "irfft":
            return dtypes.real_dtype(own), False
        return {"float32": "complex64", "float64": "complex128"}.get(own, own), False


@dataclass(frozen=True, eq=False)
class Convolution(Node):
    """``lax.conv_general_dilated``; strides, padding and dilations are in the order of the kernel's spatial dimensions."""

    lhs: Node
    rhs: Node
    strides: tuple[int, ...]
    padding: tuple[tuple[Expr, Expr], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    dimensions: tuple[str, str, str]
    groups: Expr = ONE

    @cached_property
    def shape(self) -> Shape:
        lhs, rhs, out = self.dimensions
        found = {"N": self.lhs.shape[lhs.index("N")], "C": self.rhs.shape[rhs.index("O")]}
        for n, letter in enumerate(c for c in rhs if c not in "OI"):
            x, k = self.lhs.shape[lhs.index(letter)], self.rhs.shape[rhs.index(letter)]
            room = plus(times(plus(self.lhs_dilation[n]), plus(x, -1)), 1, *self.padding[n])
            reach = plus(times(plus(self.rhs_dilation[n]), plus(k, -1)), 1)
            found[letter] = normal((room - reach) // self.strides[n] + 1)
        return tuple(found[letter] for letter in out)

    @property
    def kind(self) -> Kind:
        return self.lhs.kind


@dataclass(frozen=True, eq=False)
class Tensordot(Node):
    """The product over the last dimension of ``lhs`` and the first one of ``rhs``."""

    lhs: Node
    rhs: Node

    @property
    def shape(self) -> Shape:
        return (*self.lhs.shape[:-1], *self.rhs.shape[1:])

    @property
    def kind(self) -> Kind:
        return dtypes.promote((self.lhs.kind, self.rhs.kind))


@dataclass(frozen=True, eq=False)
class ReduceWindow(Node):
    """Reductions over windows, by "sum", "prod", "max", "min", "any" or "all"; there is one window for each dimension."""

    function: str
    array: Node
    start: Node
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[Expr, Expr], ...]
    spacing: tuple[int, ...]
    dilation: tuple[int, ...]

    @cached_property
    def shape(self) -> Shape:
        found = []
        for n, extent in enumerate(self.array.shape):
            room = plus(times(plus(self.spacing[n]), plus(extent, -1)), 1, *self.padding[n])
            reach = self.dilation[n] * (self.sizes[n] - 1) + 1
            found.append(normal((room - reach) // self.strides[n] + 1))
        return tuple(found)

    @property
    def kind(self) -> Kind:
        return self.array.kind


@dataclass(frozen=True, eq=False)
class Cumulative(Node):
    """A cumulative reduction along ``axis``: "sum", "prod", "max" or "min"."""

    function: str
    array: Node
    axis: int
    reverse: bool = False

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def kind(self) -> Kind:
        return self.array.kind


@dataclass(frozen=True, eq=False)
class Prefixes(Node):
    """``lax.associative_scan`` of arrays by any associative combiner: one array, or a tuple of them."""

    reducer: Reducer
    arrays: tuple[Node, ...]
    axis: int
    reverse: bool = False

    @property
    def shape(self) -> Shape:
        if len(self.arrays) > 1:
            raise ArrayError("a scan of several arrays is a tuple")
        return self.arrays[0].shape

    @property
    def kind(self) -> Kind:
        return self.arrays[0].kind


@dataclass(frozen=True, eq=False)
class Flip(Node):
    """An array the other way round in ``axes``."""

    array: Node
    axes: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def kind(self) -> Kind:
        return self.array.kind


@dataclass(frozen=True, eq=False)
class MapOver(Node):
    """``function``, which the program defines, of each element along the first dimension, one after the other."""

    function: str
    array: Node
    extents: Shape
    own_kind: Kind

    @property
    def shape(self) -> Shape:
        return self.extents

    @property
    def kind(self) -> Kind:
        return self.own_kind


@dataclass(frozen=True, eq=False)
class Padded(Node):
    """``fill`` before and after each dimension."""

    array: Node
    widths: tuple[tuple[Expr, Expr], ...]
    fill: Node

    @cached_property
    def shape(self) -> Shape:
        own = zip(self.array.shape, self.widths, strict=True)
        return tuple(plus(extent, *pair) for extent, pair in own)

    @property
    def kind(self) -> Kind:
        return self.array.kind

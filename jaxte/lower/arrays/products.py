"""Nodes that combine elements along dimensions: reductions, windows, cumulative reductions, einsum, convolutions, Fourier transforms.

What a reducer does to two arrays, and what changes nothing, as nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxte.lang import dtypes
from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import ONE, Call, Const, Expr, Reducer, Symbol
from jaxte.lang.operators import ADD, AND, MAXIMUM, MINIMUM, MULTIPLY, OR, Op
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.elementwise import Apply, Cast, Number, number
from jaxte.lower.arrays.kinds import LikeArray, OfArray, Together
from jaxte.lower.arrays.loops import Folded
from jaxte.lower.arrays.node import ArrayError, Node, Shape, same_shape, windows
from jaxte.lower.arrays.views import Pad, Padded, View
from jaxte.sets.affine import normal
from jaxte.sets.intervals import plus, same


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
class Combined(Together):
    """Arrays reduced by any combiner over ``axes``: one array, or a tuple of as many as there are."""

    reducer: Reducer
    arrays: tuple[Node, ...]
    starts: tuple[Node, ...]
    axes: tuple[int, ...]

    @cached_property
    def item_shape(self) -> Shape:
        first = self.arrays[0].shape
        if any(not same_shape(a.shape, first) for a in self.arrays):
            raise ArrayError("arrays that are reduced together have one shape")
        return tuple(e for n, e in enumerate(first) if n not in self.axes)


@dataclass(frozen=True, eq=False)
class ReduceWindow(OfArray):
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
            window = plus(self.sizes[n]), self.dilation[n]
            found.append(windows(extent, self.spacing[n], self.padding[n], *window, self.strides[n]))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Cumulative(LikeArray):
    """A cumulative reduction along ``axis``: "sum", "prod", "max" or "min"."""

    function: str
    array: Node
    axis: int
    reverse: bool = False


@dataclass(frozen=True, eq=False)
class Prefixes(Together):
    """``lax.associative_scan`` of arrays by any associative combiner: one array, or a tuple of them."""

    reducer: Reducer
    arrays: tuple[Node, ...]
    axis: int
    reverse: bool = False

    @property
    def item_shape(self) -> Shape:
        return self.arrays[0].shape


def node_of(expr: Expr, symbols: Mapping[Symbol, Node]) -> Node:
    """``expr``, made of ``symbols`` and numbers, as a node."""
    memo: dict[Expr, Node] = {}
    for node in postorder(expr):
        match node:
            case Symbol():
                memo[node] = symbols[node]
            case Const(value):
                memo[node] = number(value, node.dtype)
            case Call(op, (operand,)) if op.name == "cast":
                memo[node] = Cast(memo[operand], node.dtype)
            case Call(op, args):
                memo[node] = Apply(op, tuple(memo[a] for a in args))
            case _:
                raise ArrayError(f"{node!r} is no part of a combiner")
    return memo[expr]


def identity_of(reducer: Reducer, position: int = 0) -> Node:
    """What changes nothing, as a Python number."""
    return node_of(reducer.identity[position], {})


OPS: dict[str, Op] = {  # what two values of a reduction are combined by
    "sum": ADD,
    "prod": MULTIPLY,
    "max": MAXIMUM,
    "min": MINIMUM,
    "any": OR,
    "all": AND,
}


def combined(reducer: Reducer, parts: Sequence[Node]) -> Node:
    """``parts`` combined, one after the other, by a reducer of one value."""
    if reducer.name not in OPS:
        return Folded(reducer, tuple(parts))
    return functools.reduce(lambda a, b: Apply(OPS[reducer.name], (a, b)), parts)


def filled(array: Node, widths: Sequence[tuple[Expr, Expr]], fill: Node) -> Node:
    """``array`` with ``fill`` around it."""
    if isinstance(fill, Number) and not fill.value:
        return View(array, Pad(tuple(widths)))
    return Padded(array, tuple(widths), fill)


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
class Convolution(Node):
    """``lax.conv_general_dilated``; strides, padding and dilations are in the order of the kernel's spatial dimensions.

    ``groups`` are of the features of ``lhs``, or of its batch where ``by_batch`` says so; then their number is known.
    """

    lhs: Node
    rhs: Node
    strides: tuple[int, ...]
    padding: tuple[tuple[Expr, Expr], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    dimensions: tuple[str, str, str]
    groups: Expr = ONE
    by_batch: bool = False

    @cached_property
    def shape(self) -> Shape:
        lhs, rhs, out = self.dimensions
        batch = self.lhs.shape[lhs.index("N")]
        found = {
            "N": normal(batch // int(self.groups)) if self.by_batch else batch,
            "C": self.rhs.shape[rhs.index("O")],
        }
        for n, letter in enumerate(c for c in rhs if c not in "OI"):
            x, k = self.lhs.shape[lhs.index(letter)], self.rhs.shape[rhs.index(letter)]
            own = x, self.lhs_dilation[n], self.padding[n], k, self.rhs_dilation[n]
            found[letter] = windows(*own, self.strides[n])
        return tuple(found[letter] for letter in out)

    @property
    def kind(self) -> Kind:
        return self.lhs.kind


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

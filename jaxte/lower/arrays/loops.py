"""Nodes made by loops that are run when the program is traced: a part for each turn, their sums, calls of functions for each element."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import prod

from jaxte.lang.dtypes import Kind
from jaxte.lang.expr import Axis, Const, Expr, Reducer, as_expr
from jaxte.lang.walk import substitute
from jaxte.lower.arrays.kinds import LikeParts, Several, Stated
from jaxte.lower.arrays.node import Node, Shape
from jaxte.sets.affine import normal
from jaxte.sets.intervals import plus


@dataclass(frozen=True, slots=True)
class Loop:
    """``axis`` from its first value to its last one, ``step`` apart, or the other way round."""

    axis: Axis
    step: int = 1
    backwards: bool = False

    @property
    def count(self) -> int:
        return -(-(int(self.axis.hi) - int(self.axis.lo)) // self.step)


@cache
def loop(name: str, count: int, step: int = 1, backwards: bool = False) -> Loop:
    """The loop of ``count`` turns, whose variable is called ``name`` where that is free."""
    return Loop(Axis(name, 0, count * step), step, backwards)


@dataclass(frozen=True, slots=True)
class Choices:
    """``axes`` at one row of numbers after the other."""

    axes: tuple[Axis, ...]
    rows: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Parts:
    """``names`` at the parts of as many arrays, each of which is split into ``count`` along one axis."""

    names: tuple[Node, ...]
    arrays: tuple[Node, ...]
    axes: tuple[int, ...]
    count: int


@dataclass(frozen=True, eq=False)
class Each(Node):
    """``element`` for each turn of ``loops``, the last of which is the innermost: as many parts."""

    element: Node
    loops: tuple[Loop | Choices | Parts, ...]

    @property
    def count(self) -> int:
        return prod(own.count for own in self.loops)

    @cached_property
    def shape(self) -> Shape:
        """That of the part of the first turn."""
        first: dict[Expr, Expr] = {}
        for own in self.loops:
            match own:
                case Loop(axis, step, backwards):
                    first[axis] = as_expr(step * (own.count - 1) if backwards else 0)
                case Choices(axes, rows):
                    first |= zip(axes, map(as_expr, rows[0]), strict=True)
        return tuple(e if isinstance(e, Const) else normal(substitute(e, first)) for e in self.element.shape)

    @property
    def kind(self) -> Kind:
        return self.element.kind

    @cached_property
    def operands(self) -> tuple[Node, ...]:
        arrays = [a for own in self.loops if isinstance(own, Parts) for a in own.arrays]
        return (*arrays, self.element)


def count_of(parts: tuple[Node, ...]) -> int:
    """How many arrays ``parts`` are."""
    return sum(p.count if isinstance(p, (Each, Items)) else 1 for p in parts)


@dataclass(frozen=True, eq=False)
class Joined(LikeParts):
    """Arrays one after the other along ``axis``."""

    parts: tuple[Node, ...]
    axis: int

    @cached_property
    def shape(self) -> Shape:
        first, axis = self.parts[0].shape, self.axis
        extents = [p.shape[axis] for p in self.parts for _ in range(count_of((p,)))]
        return (*first[:axis], plus(*extents), *first[axis + 1 :])


@dataclass(frozen=True, eq=False)
class Stacked(LikeParts):
    """Arrays of one shape side by side along a dimension of their own."""

    parts: tuple[Node, ...]
    axis: int

    @cached_property
    def shape(self) -> Shape:
        first = self.parts[0].shape
        return (*first[: self.axis], plus(count_of(self.parts)), *first[self.axis :])


@dataclass(frozen=True, eq=False)
class Total(Node):
    """The sum of what a loop makes; where ``at_once`` is not 0, of so many parts at a time, each time in a loop of XLA by itself."""

    parts: Each
    at_once: int = 0

    @property
    def shape(self) -> Shape:
        return self.parts.shape

    @property
    def kind(self) -> Kind:
        return self.parts.kind


@dataclass(frozen=True, eq=False)
class Folded(LikeParts):
    """Arrays combined one after the other by ``reducer``."""

    reducer: Reducer
    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Tuple(Several):
    """Several arrays."""

    items: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Sums(Several):
    """What a loop makes, each array summed over ``axes``, all in one pass: a tuple of as many."""

    parts: Each
    axes: tuple[int, ...]

    @property
    def count(self) -> int:
        return self.parts.count

    @property
    def item_shape(self) -> Shape:
        return tuple(e for n, e in enumerate(self.parts.shape) if n not in self.axes)


@dataclass(frozen=True, eq=False)
class Items(Stated):
    """All arrays of a tuple of ``count`` of them, as parts."""

    values: Node
    count: int
    extents: Shape
    own_kind: Kind


@dataclass(frozen=True, eq=False)
class JoinedItems(Stated):
    """The arrays of several tuples of as many one after the other along ``axis``: the first of each tuple, then the second of each."""

    tuples: tuple[Node, ...]
    axis: int
    extents: Shape
    own_kind: Kind


@dataclass(frozen=True, eq=False)
class Scanned(Stated):
    """What ``function``, which the program defines, returns beside what it carries on, for each element along the first dimension."""

    function: str
    starts: tuple[Node, ...]
    elements: tuple[Node, ...]
    extents: Shape
    own_kind: Kind
    reverse: bool = False
    unroll: int = 1


@dataclass(frozen=True, eq=False)
class Carried(Several):
    """What ``function``, which the program defines, carries on from ``starts`` over ``elements``, and what it returns beside that."""

    function: str
    starts: tuple[Node, ...]
    elements: Node
    reverse: bool = False
    unroll: int = 1


@dataclass(frozen=True, eq=False)
class Binomial(Several):
    """What ``function``, which the program defines, carries on from ``starts`` over ``steps`` positions, and what it was handed at those that ``slots`` hold."""

    function: str
    starts: tuple[Node, ...]
    steps: int
    slots: int


@dataclass(frozen=True, eq=False)
class Replayed(Several):
    """What ``back`` carries on from ``starts`` over the positions of a :class:`Binomial` from the last to the first, and what it returns beside that.

    Attributes:
        again: the function of that, which computes positions again.
        kept, ends: what it kept, and what it ended with.
        ahead: how many positions behind its own ``back`` is handed, beside those before and behind it.
    """

    again: str
    back: str
    starts: tuple[Node, ...]
    kept: tuple[Node, ...]
    ends: tuple[Node, ...]
    steps: int
    slots: int
    ahead: int = 0


@dataclass(frozen=True, eq=False)
class MapOver(Stated):
    """``function``, which the program defines, of each element along the first dimension, one after the other."""

    function: str
    array: Node
    extents: Shape
    own_kind: Kind


@dataclass(frozen=True, eq=False)
class Item(Stated):
    """One array of a tuple of them."""

    values: Node
    position: int
    extents: Shape
    own_kind: Kind

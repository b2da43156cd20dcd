"""Nodes that put the elements of an array in other places: slices, zeros around them, other shapes, copies, each made of steps of a view.

A step acts on a whole array, and its fields have one entry for each dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import mul

from jaxte.lang.expr import ONE, ZERO, Const, Expr, as_expr
from jaxte.lang.graphs import among, place_of
from jaxte.lower.arrays.kinds import LikeArray, OfArray, OfExtents
from jaxte.lower.arrays.node import Node, Shape, times
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known, plus


@dataclass(frozen=True, slots=True)
class Range:
    """The entry ``start:stop:step`` of an index; None where Python's default is meant."""

    start: Expr | None = None
    stop: Expr | None = None
    step: int = 1


ALL = Range()


@dataclass(frozen=True, slots=True)
class Only:
    """The element of a dimension of extent 1, which need not go where a new axis is wanted in its place."""


@dataclass(frozen=True, slots=True)
class New:
    """A dimension of extent 1 that is not there yet."""


ONLY, NEW, ZEROTH = Only(), New(), ZERO
Entry = Range | Expr | Only | New


@dataclass(frozen=True, slots=True)
class Index:
    """Slices, strides and reversals; an expression takes one position and drops the dimension."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Pad:
    """Zeros before and after each dimension, or copies of its last elements ("edge")."""

    widths: tuple[tuple[Expr, Expr], ...]
    mode: str = "zeros"


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in row-major order under another shape."""

    shape: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Transpose:
    """Dimensions in another order."""

    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every element of a dimension ``times`` times in a row."""

    axis: int
    times: Expr


@dataclass(frozen=True, slots=True)
class Tile:
    """The whole of a dimension ``times`` times, one copy after the other."""

    axis: int
    times: Expr
    ndim: int = 1


@dataclass(frozen=True, slots=True)
class Roll:
    """Each dimension from the element at ``starts`` on, and around its end: ``V[i] = T[(i + start) % n]``.

    ``by_choice`` where that is written as a choice between two pads, not as two slices side by side.
    """

    starts: tuple[int, ...]
    by_choice: bool = False


Step = Index | Pad | Reshape | Transpose | Repeat | Tile | Roll


def shape_after(step: Step, shape: Shape) -> Shape:
    """The shape of what ``step`` makes of an array of ``shape``."""
    match step:
        case Index(entries):
            return _indexed(entries, shape)
        case Pad(widths):
            return tuple([plus(e, low, high) for e, (low, high) in zip(shape, widths, strict=True)])
        case Reshape(new):
            return _reshaped(new, shape)
        case Transpose(order):
            return tuple(shape[n] for n in order)
        case Roll():
            return shape
        case Repeat(axis, count) | Tile(axis, count):
            return (*shape[:axis], times(shape[axis], count), *shape[axis + 1 :])
    raise AssertionError(step)


def _reshaped(new: Shape, shape: Shape) -> Shape:
    """``new``, with the extent that is left where it says -1."""
    if not any(known(e) == -1 for e in new):
        return new
    left, others = list(shape), []
    for extent in (e for e in new if known(e) != -1):
        if among(extent, left):
            left.pop(place_of(extent, left))
        else:
            others.append(extent)
    rest = reduce(mul, left, ONE)
    whole = rest // reduce(mul, others, ONE) if others else rest
    return tuple(whole if known(e) == -1 else e for e in new)


def _indexed(entries: tuple[Entry, ...], shape: Shape) -> Shape:
    found: list[Expr] = []
    extents = iter(shape)
    for entry in entries:
        if isinstance(entry, New):
            found.append(plus(1))
            continue
        extent = next(extents)
        if isinstance(entry, Range):
            found.append(_length(entry, extent))
    return (*found, *extents)


def _length(entry: Range, extent: Expr) -> Expr:
    step = entry.step
    if step == 1 and entry.start is None and entry.stop is None:
        return extent
    if step > 0:
        start = ZERO if entry.start is None else _from_the_end(entry.start, extent)
        stop = extent if entry.stop is None else _from_the_end(entry.stop, extent)
        return _quotient(start, stop, step)
    start = entry.start if entry.start is not None else plus(extent, -1)
    stop = entry.stop if entry.stop is not None else plus(-1)
    return _quotient(stop, start, -step)


def _quotient(start: Expr, stop: Expr, step: int) -> Expr:
    """How many steps it takes from ``start`` until ``stop`` is reached."""
    if isinstance(start, Const) and isinstance(stop, Const):
        return as_expr((stop.value - start.value + step - 1) // step)  # type: ignore[operator]
    return normal((stop - start + (step - 1)) // step)


def _from_the_end(position: Expr, extent: Expr) -> Expr:
    """Where a negative position is."""
    is_negative = isinstance(position, Const) and position.value < 0  # type: ignore[operator]
    return plus(extent, position) if is_negative else position


@dataclass(frozen=True, eq=False)
class View(OfArray):
    """The elements of an array in other places: a slice, zeros around it, another shape or order, copies."""

    array: Node
    step: Step

    @cached_property
    def shape(self) -> Shape:
        return shape_after(self.step, self.array.shape)


@dataclass(frozen=True, eq=False)
class Broadcast(OfArray, OfExtents):
    """An array repeated to a shape."""

    array: Node
    extents: Shape


@dataclass(frozen=True, eq=False)
class Padded(OfArray):
    """``fill`` before and after each dimension."""

    array: Node
    widths: tuple[tuple[Expr, Expr], ...]
    fill: Node

    @cached_property
    def shape(self) -> Shape:
        own = zip(self.array.shape, self.widths, strict=True)
        return tuple(plus(extent, *pair) for extent, pair in own)


@dataclass(frozen=True, eq=False)
class Spread(OfArray):
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


@dataclass(frozen=True, eq=False)
class Flip(LikeArray):
    """An array the other way round in ``axes``."""

    array: Node
    axes: tuple[int, ...]

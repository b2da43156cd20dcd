"""View steps on nodes, and values broadcast against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import is_

from jaxte.lang.expr import ONE, ZERO, Axis, Expr, as_expr
from jaxte.lang.graphs import among
from jaxte.lower.arrays.elementwise import Apply, Number, Typed
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import (
    ALL,
    NEW,
    ZEROTH,
    Entry,
    Index,
    New,
    Only,
    Pad,
    Range,
    Repeat,
    Reshape,
    Spread,
    Step,
    Transpose,
    View,
)
from jaxte.lower.code.vocabulary import Value
from jaxte.sets.intervals import known


def apply_steps(array: Node, steps: Sequence[Step], dtype: str = "") -> Node:
    """``steps``, one after the other, on ``array``; of reshapes in a row the last one, of transpositions one.

    With the ``dtype`` of the array, a slice with zeros around it is one pad, which is negative where elements are cut off.
    """
    for step in steps:
        if isinstance(step, Reshape) and isinstance(array, View) and isinstance(array.step, Reshape):
            array = array.array
        if isinstance(step, Transpose) and isinstance(array, View) and isinstance(array.step, Transpose):
            step, array = Transpose(tuple(array.step.order[n] for n in step.order)), array.array
        shifted = _shifted(array, step, dtype) if dtype and isinstance(step, Pad) else None
        if shifted is not None:
            array = shifted
        elif not _does_nothing(step):
            array = View(array, step)
    return array


def _shifted(array: Node, pad: Pad, dtype: str) -> Node | None:
    """A slice and the zeros around it as one pad of what is sliced; None where one dimension takes more than that."""
    match array:
        case View(whole, Index(entries)) if pad.mode == "zeros" and len(entries) == len(pad.widths):
            found = tuple(map(_moved, entries, whole.shape, pad.widths))
            widths = tuple(w for w in found if w is not None)
            if len(widths) == len(whole.shape):
                return Spread(whole, Typed(Number(0), dtype), widths)
    return None


def _moved(entry: Entry, extent: Expr, pair: tuple[Expr, Expr]) -> tuple[Expr, Expr, int] | None:
    """What a slice of a dimension leaves out, taken off what is put around it; None where that is no number."""
    if not isinstance(entry, Range) or entry.step != 1:
        return None
    first = ZERO if entry.start is None else entry.start
    last = extent if entry.stop is None else entry.stop
    numbers = [known(e) for e in (extent, first, last, *pair)]
    if any(n is None or n < 0 for n in numbers):
        return None
    size, start, stop, before, behind = (n or 0 for n in numbers)
    return as_expr(before - start), as_expr(behind - (size - min(stop, size))), 0


def _does_nothing(step: Step) -> bool:
    match step:
        case Index(entries):
            return all(entry is ALL or entry == ALL for entry in entries)
        case Pad(widths):
            return all(w is ZERO for pair in widths for w in pair)
        case Repeat(_, times):
            return times is ONE
        case Transpose(order):
            return order == tuple(range(len(order)))
    return False


def broadcast(value: Value, dims: Sequence[Axis]) -> Node:
    """``value`` with new axes of length 1 where it lacks one of ``dims``."""
    if not value.dims or (len(value.dims) == len(dims) and all(map(is_, value.dims, dims))):
        return value.code
    own = [n for n, d in enumerate(dims) if among(d, value.dims)]
    kept = with_kept_axes(value.code, len(value.dims))
    if kept is not None and kept[1] == tuple(n for n in range(len(dims)) if n not in own):
        return kept[0]
    array = value.code
    entries: tuple[Entry, ...] = (ALL,) * len(value.dims)
    if isinstance(array, View) and isinstance(array.step, Index):
        given = array.step.entries
        slices = [e for e in given if isinstance(e, Range)]
        if len(slices) == len(value.dims) and not any(isinstance(e, New) for e in given):
            array, entries = array.array, given
    return _with_new_axes(array, entries, own, len(dims))


def with_kept_axes(array: Node, ndim: int) -> tuple[Node, tuple[int, ...]] | None:
    """``array``, of ``ndim`` dimensions, with axes of length 1 more, and where they are; None where nothing lies below it that has such.

    That is a reduction that keeps its axes, an array of which an element was taken in a dimension of length 1, and what is made of such.
    """
    match array:
        case View(inner, Index(entries)):
            units = tuple(n for n, e in enumerate(entries) if isinstance(e, Only))
            if units and all(isinstance(e, (Only, Range)) for e in entries):
                whole = Index(tuple(ALL if isinstance(e, Only) else e for e in entries))
                return apply_steps(inner, [whole]), units
        case Reduced(axes=tuple(axes), keep=False) if ndim:
            given = (array.function, array.array, axes, array.own_dtype, array.start)
            return Reduced(*given, keep=True), axes
        case Apply() if ndim:
            return _applied_to_kept(array, ndim)
    return None


def _applied_to_kept(array: Apply, ndim: int) -> tuple[Node, tuple[int, ...]] | None:
    """An operation on operands with axes of length 1, where those that are arrays have them at the same places."""
    own: list[Node] = []
    places: set[tuple[int, ...]] = set()
    for arg in array.args:
        if not arg.shape:
            own.append(arg)
            continue
        kept = with_kept_axes(arg, ndim) if len(arg.shape) == ndim else None
        if kept is None:
            return None
        own.append(kept[0])
        places.add(kept[1])
    return (Apply(array.op, tuple(own)), places.pop()) if len(places) == 1 else None


def _with_new_axes(array: Node, entries: Sequence[Entry], own: Sequence[int], ndim: int) -> Node:
    """Puts new axes before the entries of the dimensions that come at the positions ``own`` of the result."""
    found: list[Entry] = []
    position = 0
    taken = iter(own)
    upcoming = next(taken, ndim)
    for entry in entries:
        if isinstance(entry, Range):
            found += [NEW] * (upcoming - position)
            position = upcoming + 1
            upcoming = next(taken, ndim)
        found.append(entry)
    found += [NEW] * (ndim - position)
    return apply_steps(array, [Index(tuple(_keeping(found)))])


def _keeping(entries: Sequence[Entry]) -> Iterator[Entry]:
    """``entries`` without taking a dimension of extent 1 out beside a place where one is put in."""
    for isolated, run in groupby(entries, lambda e: isinstance(e, (Only, New))):
        own = list(run)
        if not isolated:
            yield from own
            continue
        out, into = (sum(isinstance(e, kind) for e in own) for kind in (Only, New))
        pairs = min(out, into)
        yield from [ALL] * pairs
        yield from [ZEROTH] * (out - pairs)
        yield from [NEW] * (into - pairs)

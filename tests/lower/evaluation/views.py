"""The values of views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxte.lang.expr import Expr
from jaxte.lower.arrays import views
from jaxte.lower.arrays.node import ArrayError
from jaxte.lower.arrays.views import (
    Entry,
    Index,
    New,
    Only,
    Pad,
    Range,
    Repeat,
    Reshape,
    Roll,
    Tile,
    Transpose,
)
from jaxte.sets.intervals import may_be_negative
from tests.lower.evaluation.frame import Frame, Rules, Value

_MODES = {"zeros": "constant", "edge": "edge"}


def _view(node: views.View, at: Frame) -> Value:
    array, step = at.value(node.array), node.step
    match step:
        case Index(entries):
            return np.asarray(array[_index(array.shape, entries, at)])
        case Pad(widths, mode):
            return np.pad(array, _widths(widths, at), _MODES[mode])  # type: ignore[call-overload]
        case Reshape(shape):
            return array.reshape(at.shape(shape))
        case Transpose(order):
            return array.transpose(order)
        case Roll(starts):
            return np.roll(array, [-start for start in starts], range(array.ndim))
        case Repeat(axis, times):
            return np.repeat(array, at.size(times), axis)
        case Tile(axis, times, ndim):
            return np.tile(array, [at.size(times) if n == axis else 1 for n in range(ndim)])
    raise AssertionError(step)


def _index(shape: Sequence[int], entries: Sequence[Entry], at: Frame) -> tuple[slice | int | None, ...]:
    extents = iter(shape)
    return tuple(None if isinstance(e, New) else _entry(e, next(extents), at) for e in entries)


def _entry(entry: Entry, extent: int, at: Frame) -> slice | int:
    match entry:
        case Only():
            if extent != 1:
                raise ArrayError(f"the only element of {extent}")
            return 0
        case Range(start, stop, step):
            return slice(_end(start, at), _end(stop, at), step)
    assert isinstance(entry, Expr)
    position = at.size(entry)
    if not -extent <= position < extent:
        raise ArrayError(f"position {position} of a dimension of {extent}")
    return position


def _end(end: Expr | None, at: Frame) -> int | None:
    """An end of a slice; sizes that leave nothing do not count it from the end of the array."""
    if end is None:
        return None
    return max(at.size(end), 0) if may_be_negative(end) else at.size(end)


def _widths(widths: Sequence[tuple[Expr, Expr]], at: Frame) -> list[tuple[int, int]]:
    return [(at.size(before), at.size(behind)) for before, behind in widths]


def _broadcast(node: views.Broadcast, at: Frame) -> Value:
    return np.broadcast_to(at.value(node.array), at.shape(node.extents))


def _padded(node: views.Padded, at: Frame) -> Value:
    array, fill = at.values((node.array, node.fill))
    return np.pad(array, _widths(node.widths, at), constant_values=fill.astype(array.dtype))


def _spread(node: views.Spread, at: Frame) -> Value:
    array, fill = at.values((node.array, node.fill))
    for axis, (before, behind, between) in enumerate(node.widths):
        array = spread(array, axis, between, at.size(before), at.size(behind), fill)
    return array


def spread(array: np.ndarray, axis: int, between: int, before: int, behind: int, fill: Value) -> np.ndarray:
    """``array`` with ``fill`` between the elements of ``axis``, before and behind them; negative numbers cut off."""
    moved = np.moveaxis(array, axis, 0)
    count = len(moved)
    length = count + between * max(0, count - 1)
    whole = np.full((max(0, before) + length + max(0, behind), *moved.shape[1:]), fill, array.dtype)
    whole[max(0, before) : max(0, before) + length : between + 1] = moved
    return np.moveaxis(whole[max(0, -before) : len(whole) - max(0, -behind)], 0, axis)


def _flip(node: views.Flip, at: Frame) -> Value:
    return np.flip(at.value(node.array), node.axes)


RULES: Rules = {
    views.View: _view,
    views.Broadcast: _broadcast,
    views.Padded: _padded,
    views.Spread: _spread,
    views.Flip: _flip,
}

"""What the steps of a view make: shapes, and how many elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import ZERO, Expr
from jaxte.lower.arrays.steps import Index, Pad, Range, Repeat, Reshape, Roll, Step, Tile, Transpose
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known, plus, times


def shape_after(step: Step, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The shape of what ``step`` makes of an array of ``shape``."""
    match step:
        case Index(entries):
            return tuple(
                _range_length(entry, extent)
                for entry, extent in zip(entries, shape, strict=True)
                if isinstance(entry, Range)
            )
        case Pad(widths):
            return tuple(plus(e, before, after) for e, (before, after) in zip(shape, widths, strict=True))
        case Reshape(new):
            return new
        case Transpose(order):
            return tuple(shape[n] for n in order)
        case Roll():
            return shape
        case Repeat(axis, count) | Tile(axis, count):
            longer = times(shape[axis], count)
            assert longer is not None
            return (*shape[:axis], longer, *shape[axis + 1 :])
    raise AssertionError(step)


def _range_length(entry: Range, extent: Expr) -> Expr:
    step = entry.step
    if step > 0:
        start = entry.start if entry.start is not None else ZERO
        stop = entry.stop if entry.stop is not None else extent
        return normal((stop - start + (step - 1)) // step)
    start = entry.start if entry.start is not None else plus(extent, -1)
    stop = entry.stop if entry.stop is not None else plus(-1)
    return normal((start - stop + (-step - 1)) // -step)


def elements_made(steps: Sequence[Step], shape: Sequence[Expr]) -> int:
    """The elements of the largest array that ``steps`` copy on their way from one of ``shape``; 0 where sizes are symbolic."""
    most, now = 0, tuple(shape)
    for step in steps:
        now = shape_after(step, now)
        if isinstance(step, (Pad, Repeat, Roll, Tile, Transpose)):
            sizes = [known(e) for e in now]
            most = max(most, 0 if None in sizes else prod(s or 0 for s in sizes))
    return most

"""Reductions between bounds that move with the output, in pieces with bounds of their own at each of its positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce, call, conjunction, conjuncts
from jaxte.lang.graphs import among, components
from jaxte.lang.limits import FEW, LONGEST_UNROLLED, TABLE
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.cost.work import points
from jaxte.lower.rewrites.short_axes import written_out
from jaxte.sets.intervals import known
from jaxte.sets.tabulate import tabulated

_LEAST_GAIN = 2.5  # the same for pieces: a triangle, with all of its rows, is none


@dataclass(frozen=True, slots=True)
class _Moving:
    """An axis of a reduction whose bounds move with ``by``.

    Attributes:
        runs: where each run of positions of ``by`` with the same bounds ends, and these bounds.
        share: of all pairs of positions, those inside.
    """

    axis: Axis
    by: Axis
    runs: tuple[tuple[int, tuple[int, int]], ...]
    share: float


def in_pieces(node: Reduce) -> Expr | None:
    """``node`` with bounds of its own at each position of the axes that they move with; None where these are many, or gain little."""
    if node.where is TRUE:
        return None
    moving = [_moving(own, conditions) for own, conditions in groups_of(node) if conditions]
    found = [m for m in moving if m is not None]
    if len(found) < len(moving) or len({m.by for m in found}) < len(found):
        return None
    if any(_meet(m, read) for m in found for read in reads_of(*node.exprs)):
        return None  # a window, whose bounds are where it leaves its tensor
    if (
        prod(m.share for m in found) * _LEAST_GAIN > 1
        or not 1 < prod(len(m.runs) for m in found) <= LONGEST_UNROLLED
    ):
        return None
    pieces = _pieces(node.changed(where=TRUE), found)
    outside = [c for c in conjuncts(node.where) if not any(among(a, node.axes) for a in free_axes(c))]
    return call(SELECT, conjunction(outside), pieces, node.reducer.identity[0]) if outside else pieces


def _meet(moving: _Moving, read: Read) -> bool:
    """Whether an index of ``read`` follows both the axis and what its bounds move with."""
    return any({moving.axis, moving.by} <= free_axes(index).keys() for index in read.indices)


def _moving(own: Sequence[Axis], conditions: Sequence[Expr]) -> _Moving | None:
    """How the bounds of the one axis in ``own`` move, if ``conditions`` are bounds that move with one other axis."""
    where = conjunction(conditions)
    others = [a for a in free_axes(where) if not among(a, own)]
    if len(own) != 1 or len(others) != 1 or known(others[0].lo) != 0:
        return None
    (axis,), (by,) = own, others
    rows, columns, first = known(by.extent) or 0, known(axis.extent) or 0, known(axis.lo) or 0
    if not 0 < rows * columns <= TABLE:
        return None
    at: dict[Expr, np.ndarray] = {by: np.arange(rows)[:, None], axis: first + np.arange(columns)[None, :]}
    inside = tabulated(where, at)
    if inside is None:
        return None
    inside = np.broadcast_to(inside, (rows, columns))
    counts, starts = inside.sum(axis=1), inside.argmax(axis=1)
    if not all(row[s : s + c].all() for row, s, c in zip(inside, starts, counts, strict=True)):
        return None
    bounds = [(first + int(s), first + int(s + c)) for s, c in zip(starts, counts, strict=True)]
    return _Moving(axis, by, tuple(_runs(bounds)), float(inside.mean()))


def _runs(bounds: Sequence[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    found: list[tuple[int, tuple[int, int]]] = []
    for position, own in enumerate(bounds):
        if found and found[-1][1] == own:
            found.pop()
        found.append((position + 1, own))
    return found


def _pieces(node: Reduce, moving: Sequence[_Moving]) -> Expr:
    """``node`` with the bounds of the axes in ``moving``, a choice by the position of what they move with."""
    if not moving:
        # where they are few, elementwise and part of the loop that puts the pieces together
        return written_out(node, node.axes) if points(node.axes) <= FEW else node
    own, *others = moving
    result: Expr | None = None
    for stop, (low, high) in reversed(own.runs):
        piece: Expr = node.reducer.identity[0]
        if low < high:
            axis = Axis(own.axis.name, low, high, reduction=True)
            exprs = [substitute(e, {own.axis: axis}) for e in node.exprs]
            axes = [axis if a is own.axis else a for a in node.axes]
            piece = _pieces(node.changed(exprs=exprs, axes=axes, where=TRUE), others)
        result = piece if result is None else call(SELECT, own.by < stop, piece, result)
    assert result is not None
    return result


def groups_of(node: Reduce) -> list[tuple[list[Axis], list[Expr]]]:
    """The axes of ``node`` that share conditions, with these."""
    own = {*node.axes}
    tied = components([*node.axes, *conjuncts(node.where)], lambda part: own & free_axes(part).keys())
    groups = [
        ([a for a in node.axes if a in parts], [c for c in parts if c not in own])
        for parts in map(dict.fromkeys, tied)
    ]
    return [group for group in groups if group[0]]

"""Cumulative reductions: which ones are, over all elements up to a position that moves with one axis of the output, and linear recurrences as such.

Results that are repeated: ``y[i, j] = prod over k of x[i, k]`` is the same for all ``j``, and so is its derivative.
What flows into the copies is added up before it meets the slope, ``g[i] = sum over j of H[i, j]``, so that the adjoint takes as many points as
the products and the head together have, not as many as all copies of the products.

Linear recurrences along an axis are solved state by state:
``T[p][m] = offset[p][m] + sum over q of slope[p][q][m] * T[q][n]``, where ``n`` is the position before ``m``, or the one after it.
A state that no later one leads back to is solved by itself, as soon as those that it reads are there: a slope of 1 makes it a
cumulative sum, any other a reduction of the maps ``t -> a t + b`` under composition. Only states that read each other
are maps of several values, whose composition multiplies matrices. States that are zero are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from jaxte.algebra.product import is_zero
from jaxte.algebra.simplify import is_one, plus, times
from jaxte.autodiff.terms.guards import guard
from jaxte.lang.expr import (
    ZERO,
    Axis,
    Const,
    Expr,
    Read,
    Reduce,
    Reducer,
    Symbol,
    cast,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among, reached
from jaxte.lang.walk import free_axes, substitute
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.conditions import limit_of
from jaxte.sets.intervals import known
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.solving.elimination import mentions
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.shapes import inserted
from jaxte.tensors.tensor import Compute


@dataclass(frozen=True, slots=True)
class Prefix:
    """``tensor[.., j, ..] = reduce over the first at(j) + 1 elements``, ``element`` an expression of ``step``.

    Attributes:
        node: the reduction, its operands in terms of ``step``, which runs from 0.
        at: how far the prefix reaches, an expression of ``j``; below 0 it is empty.
        moving: ``j``.
    """

    node: Reduce
    step: Axis
    at: Expr
    moving: Axis


def as_prefix(tensor: Compute) -> Prefix | None:
    """The cumulative reduction that the body of ``tensor`` is, if it is one."""
    node = tensor.body
    if not isinstance(node, Reduce) or len(node.axes) != 1:
        return None
    (axis,) = node.axes
    found = _moving_limit(node, axis, tensor.axes)
    if found is None:
        return None
    (moving, end, forward), others = found
    step = Axis(axis.name, 0, axis.extent, reduction=True)
    position = step + axis.lo if forward else axis.hi - 1 - step
    at = end - axis.lo if forward else axis.hi - 1 - end
    table: dict[Expr, Expr] = {axis: normal(position)}
    exprs = [substitute(e, table) for e in node.exprs]
    where = conjunction([substitute(c, table) for c in others])
    # Compositions of maps do not commute: read backwards, the arguments of the combiner change places.
    reducer = node.reducer if forward else replace(node.reducer, lhs=node.reducer.rhs, rhs=node.reducer.lhs)
    return Prefix(Reduce(reducer, exprs, (step,), where, node.position), step, normal(at), moving)


Limit = tuple[Axis, Expr, bool]
# Reductions whose adjoints need no prefixes: a limit that moves with an axis of one value does not move.
_ALONE = ("sum", "max", "min")


def _moving_limit(node: Reduce, axis: Axis, outer: Sequence[Axis]) -> tuple[Limit, list[Expr]] | None:
    """The condition that moves with an axis that nothing else depends on, and the other conditions."""
    conditions = list(conjuncts(node.where))
    if node.reducer.name in _ALONE:
        outer = [a for a in outer if known(a.extent) != 1]
    for condition in conditions:
        limit = _limit(condition, axis, outer) if is_decidable(condition) else None
        others = [c for c in conditions if c is not condition]
        if limit is not None and not any(mentions(e, [limit[0]]) for e in (*node.exprs, *others)):
            return limit, others
    return None


def _limit(condition: Expr, axis: Axis, outer: Sequence[Axis]) -> Limit | None:
    """``(j, end, forward)`` for ``axis <= end(j)`` (forward) or ``axis >= end(j)``."""
    limit = limit_of(condition, axis)
    if limit is None or [abs(c) for c in limit.end.terms.values()] != [1]:
        return None
    (moving,) = limit.end.terms
    if not isinstance(moving, Axis) or not among(moving, outer):
        return None
    return moving, from_linear(limit.end), not limit.is_lower


def own_axes(tensor: Compute) -> list[Axis]:
    """The axes that the elements of ``tensor``, a reduction, differ along; with those of a size that is not known."""
    depends = free_axes(tensor.body)
    return [a for a in tensor.axes if a in depends or (known(a.extent) or 0) < 2]


def first_along_others(tensor: Compute) -> Read:
    """The element of ``tensor`` that stands for those along the axes that it is repeated along."""
    own = own_axes(tensor)
    at: list[Expr] = [a if among(a, own) else ZERO for a in tensor.axes]
    return Read(tensor, at)


T = TypeVar("T")


@dataclass(frozen=True)
class Recurrence:
    """The equations of all states.

    Attributes:
        slopes: ``slopes[p][q]``, the factor of state ``q`` in state ``p``; it may read what is not there at the end, where it is not used.
        offsets: what is added to each state.
        at: the position that slopes and offsets are written in, a reduction axis from 0.
        outer: the other axes in them.
        place: how many of these stand before the position in the tensors that are made.
        backward: whether a state follows from the one after it.
        dtype: of the states.
        name: the label of the tensors that are made.
    """

    slopes: Sequence[Sequence[Expr]]
    offsets: Sequence[Expr]
    at: Axis
    outer: Sequence[Axis]
    place: int
    backward: bool
    dtype: str
    name: str

    @property
    def has_neighbour(self) -> Expr:
        return self.at + 1 < self.at.hi if self.backward else self.at >= 1

    @property
    def neighbour(self) -> Expr:
        return self.at + 1 if self.backward else self.at - 1


def solve(recurrence: Recurrence, wanted: Iterable[int]) -> dict[int, Compute]:
    """The ``wanted`` states as tensors over the outer axes and the position; those that are zero are not there."""
    solved: dict[int, Compute] = {}
    for block in _blocks(recurrence.slopes, wanted):
        offsets = [_offset(recurrence, p, solved) for p in block]
        if all(map(is_zero, offsets)):
            continue
        solved |= dict(zip(block, _block(recurrence, block, offsets), strict=True))
    return solved


def _blocks(slopes: Sequence[Sequence[Expr]], wanted: Iterable[int]) -> list[list[int]]:
    """The states that are needed for ``wanted``, those that read each other together, each after what it reads."""
    reads = [[q for q, slope in enumerate(row) if not is_zero(slope)] for row in slopes]
    reached = [_reached(reads, p) for p in range(len(slopes))]
    needed = {q for p in wanted for q in (p, *reached[p])}
    left = sorted(needed, key=lambda p: (len(reached[p] | {p}), p))  # fewer below: earlier
    blocks: list[list[int]] = []
    for p in left:
        if not any(p in block for block in blocks):
            blocks.append([q for q in left if q == p or (q in reached[p] and p in reached[q])])
    return blocks


def _reached(reads: Sequence[Sequence[int]], start: int) -> set[int]:
    return set(reached(reads[start], lambda state: reads[state]))


def _offset(recurrence: Recurrence, state: int, solved: dict[int, Compute]) -> Expr:
    """The offset of ``state`` with what the states that are solved already add to it."""
    total = recurrence.offsets[state]
    for other, tensor in solved.items():
        value = Read(tensor, inserted(list[Expr](recurrence.outer), recurrence.place, recurrence.neighbour))
        share = times(value, recurrence.slopes[state][other])
        if not is_zero(share):
            total = plus(total, guard(recurrence.has_neighbour, share))
    return total


def _block(recurrence: Recurrence, block: Sequence[int], offsets: Sequence[Expr]) -> list[Compute]:
    """The states of ``block``, which read each other and themselves."""
    slopes = [[recurrence.slopes[p][q] for q in block] for p in block]
    if len(block) == 1 and is_zero(slopes[0][0]):
        return [_tensor(recurrence, lambda here: substitute(offsets[0], {recurrence.at: here}))]
    elements = [cast(offset, recurrence.dtype) for offset in offsets]
    if len(block) == 1 and is_one(slopes[0][0]):
        reducer, results = builtin_reducer("sum", recurrence.dtype), [0]
    else:
        arity = len(block)
        reducer = _maps(arity, recurrence.dtype, recurrence.backward)
        matrix = [guard(recurrence.has_neighbour, slope) for row in slopes for slope in row]
        elements = [cast(slope, recurrence.dtype) for slope in matrix] + elements
        results = [arity * arity + p for p in range(arity)]
    return [_cumulative(recurrence, reducer, elements, position) for position in results]


def _cumulative(recurrence: Recurrence, reducer: Reducer, elements: Sequence[Expr], position: int) -> Compute:
    at, backward = recurrence.at, recurrence.backward

    def reduced(here: Axis) -> Expr:
        return Reduce(reducer, elements, (at,), here <= at if backward else at <= here, position)

    return _tensor(recurrence, reduced)


def _tensor(recurrence: Recurrence, body: Callable[[Axis], Expr]) -> Compute:
    """A tensor over new outer axes and a position ``here``, with the element ``body(here)``."""
    outer = [Axis(a.name, 0, a.hi) for a in recurrence.outer]
    here = Axis(recurrence.at.name, 0, recurrence.at.hi)
    table: dict[Expr, Expr] = dict(zip(recurrence.outer, outer, strict=True))
    value = substitute(body(here), table)
    if value.weak or value.dtype != recurrence.dtype:
        value = cast(value, recurrence.dtype)
    return Compute(recurrence.name, inserted(outer, recurrence.place, here), value)


def _maps(arity: int, dtype: str, backward: bool) -> Reducer:
    """Composition of maps ``t -> A t + b`` of ``arity`` values; the later map is applied first where the recurrence runs backward."""

    def symbols(side: str) -> tuple[list[list[Symbol]], list[Symbol]]:
        matrix = [[Symbol(f"{side}{p}{q}", dtype) for q in range(arity)] for p in range(arity)]
        return matrix, [Symbol(f"{side}{p}", dtype) for p in range(arity)]

    left, right = symbols("a"), symbols("b")
    (a1, b1), (a2, b2) = (left, right) if backward else (right, left)
    matrix = [_dot(a1[p], [a2[r][q] for r in range(arity)]) for p in range(arity) for q in range(arity)]
    vector = [b1[p] + _dot(a1[p], b2) for p in range(arity)]
    flat1, flat2 = ([*(s for row in a for s in row), *b] for a, b in (left, right))
    unit = [Const(1.0 if p == q else 0.0, dtype) for p in range(arity) for q in range(arity)]
    identity = (*unit, *(Const(0.0, dtype) for _ in range(arity)))
    return Reducer("custom", "recurrence", "even", tuple(flat1), tuple(flat2), (*matrix, *vector), identity)


def _dot(row: Sequence[Expr], column: Sequence[Expr]) -> Expr:
    total: Expr = row[0] * column[0]
    for a, b in zip(row[1:], column[1:], strict=True):
        total = total + a * b
    return total

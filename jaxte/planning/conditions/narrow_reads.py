"""Indices where choices ask for them: an end that is held there only to stay inside is not held where it is not reached.

    select(i == 0, x[n - 1], x[maximum(i - 1, 0)])    is    select(i == 0, x[n - 1], x[i - 1])

A careful writer keeps an index in range that the choice keeps in range already. Without the second guard the read is a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxte.lang.expr import Axis, Call, Const, Expr, Read, call, conjuncts
from jaxte.lang.operators import MAXIMUM, MINIMUM, NOT, NOT_EQUAL, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, rewrite, substitute
from jaxte.sets.affine import linear
from jaxte.sets.conditions import nonnegative_forms, positive
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import axis_bounds, interval

_HELD = (MAXIMUM, MINIMUM)
Bounds = dict[Expr, tuple[int, int]]


def with_narrow_reads(body: Expr) -> Expr:
    """``body`` with maxima and minima in indices as the side that a choice around the read leaves."""

    def rule(node: Expr) -> Expr:
        match node:
            case Call(op, (test, taken, other)) if op is SELECT and any(map(_holds, (taken, other))):
                first, second = _narrowed(taken, conjuncts(test)), _narrowed(other, [call(NOT, test)])
                return node if first is taken and second is other else call(SELECT, test, first, second)
        return node

    return rewrite(body, rule) if _holds(body) else body


def _holds(node: Expr) -> bool:
    """Whether an index in ``node`` has a maximum or a minimum of positions."""
    indices = (i for read in reads_of(node) for i in read.indices if not reads_of(i))
    return any(isinstance(n, Call) and n.op in _HELD for i in indices for n in postorder(i))


def _narrowed(branch: Expr, conditions: Sequence[Expr]) -> Expr:
    """``branch`` where ``conditions`` hold."""
    table: dict[Expr, Expr] = {}
    for read in reads_of(branch):
        indices = [i if reads_of(i) else _resolved(i, conditions) for i in read.indices]
        if any(new is not old for new, old in zip(indices, read.indices, strict=True)):
            table[read] = Read(read.tensor, indices)
    return substitute(branch, table)


def _resolved(index: Expr, conditions: Sequence[Expr]) -> Expr:
    """``index`` with each maximum and minimum as the side that it always is where ``conditions`` hold."""
    if not any(isinstance(n, Call) and n.op in _HELD for n in postorder(index)):
        return index
    bounds = _ends(free_axes(index), conditions)

    def rule(node: Expr) -> Expr:
        if not (isinstance(node, Call) and node.op in _HELD and all(map(is_index, node.args))):
            return node
        first, second = node.args
        ends = interval(linear(first) - linear(second), bounds)
        if ends is None or ends[0] < 0 < ends[1]:
            return node
        return first if (ends[0] >= 0) == (node.op is MAXIMUM) else second

    return rewrite(index, rule)


def _ends(axes: Iterable[Axis], conditions: Sequence[Expr]) -> Bounds:
    """Inclusive bounds of ``axes`` where ``conditions`` on single ones of them hold."""
    found = axis_bounds(axes)
    for condition in map(positive, conditions):
        for axis, (low, high) in list(found.items()):
            if isinstance(condition, Call) and condition.op is NOT_EQUAL and condition.args[0] is axis:
                value = condition.args[1]
                at = int(value.value) if isinstance(value, Const) else None  # type: ignore[arg-type]
                found[axis] = (low + (at == low), high - (at == high))
            for form in nonnegative_forms(condition):
                if len(form.terms) == 1 and (factor := form.coefficient(axis)):
                    low, high = found[axis]
                    at = -(form.constant // factor) if factor > 0 else form.constant // -factor
                    found[axis] = (max(low, at), high) if factor > 0 else (low, min(high, at))
    return {axis: ends for axis, ends in found.items() if ends[0] <= ends[1]}

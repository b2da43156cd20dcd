"""Axes of reductions as long as the points that count.

    sum over k < 25 of x[b, k] * w[k] where k < 24 and k >= 2     is   sum over r < 22 of x[b, r + 2] * w[r + 2]
    max over k, c < 1 of x[b, k, c] where k <= i                  is   max over k of x[b, k, 0] where k <= i

A condition on one axis alone is where that axis begins or ends, and an axis of one value is that value: what is recognised by its axes, digits of
one number or the bounds of a scan, is then the same for each spelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lang.expr import ONE, Axis, Expr, Reduce, conjunction, conjuncts
from jaxte.lang.identity import among
from jaxte.lang.walk import substitute
from jaxte.planning.indices.digits import straightened
from jaxte.sets.conditions import nonnegative_forms
from jaxte.sets.intervals import known


def with_tight_axes(node: Reduce) -> Reduce:
    """``node`` over axes that begin and end where its conditions on each of them say; without those of one value, if others are left."""
    if not node.reducer.ignores_order:
        return node
    conditions = conjuncts(node.where)
    ends = {axis: found for axis in node.axes if (found := _ends(axis, conditions)) is not None}
    table: dict[Expr, Expr] = {}
    axes: list[Axis] = []
    for axis in node.axes:
        own = _own(axis, *ends[axis]) if axis in ends else axis
        if own is not axis:
            table[axis] = own + ends[axis][0]
        axes.append(own)
    if len(axes) > 1 and (units := [a for a in axes if a.extent is ONE]):
        kept = [a for a in axes if a.extent is not ONE] or units[:1]
        to_start: dict[Expr, Expr] = {a: a.lo for a in units if not among(a, kept)}
        table = {a: substitute(e, to_start) for a, e in table.items()} | to_start
        axes = kept
    left = [c for c in conditions if not _is_met(c, ends)]
    if not table and len(left) == len(conditions):
        return node
    where, *exprs = (straightened(substitute(e, table)) for e in (conjunction(left), *node.exprs))
    return Reduce(node.reducer, exprs, axes, where, node.position)


def _own(axis: Axis, low: int, high: int) -> Axis:
    """An axis for the values of ``axis`` from ``low`` to ``high``: this one if they are all of its own."""
    if (low, high) == (known(axis.lo), known(axis.hi)):
        return axis
    return Axis(axis.name, 0, high - low, reduction=True)


def _ends(axis: Axis, conditions: Sequence[Expr]) -> tuple[int, int] | None:
    """Where ``axis`` begins and ends under the conditions on it alone; None where this depends on sizes, or nothing is left."""
    low, high = known(axis.lo), known(axis.hi)
    if low is None or high is None:
        return None
    for condition in conditions:
        for form in nonnegative_forms(condition):
            if len(form.terms) != 1 or not (factor := form.coefficient(axis)):
                continue
            if factor > 0:  # factor * axis + constant >= 0
                low = max(low, -(form.constant // factor))
            else:
                high = min(high, form.constant // -factor + 1)
    return (low, high) if low < high else None


def _is_met(condition: Expr, ends: Mapping[Axis, tuple[int, int]]) -> bool:
    """Whether ``condition`` is about one axis alone, whose ``ends`` are it."""
    forms = nonnegative_forms(condition)
    return bool(forms) and all(len(form.terms) == 1 and next(iter(form.terms)) in ends for form in forms)

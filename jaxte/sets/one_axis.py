"""Conditions on one axis as the values of it at which they hold, one after the other: what a chain of choices by an axis leaves to each of its branches.

``select(c == 0, f, select(c == 1, g, h))`` leaves the values from 2 on to ``h``, and 2 alone where ``c`` has three.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxte.lang.expr import Axis, Call, Expr, call
from jaxte.lang.operators import EQUAL, GREATER_EQUAL, LESS_EQUAL, NOT, NOT_EQUAL
from jaxte.lang.walk import free_axes
from jaxte.sets.conditions import narrowed
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.intervals import axis_bounds


class Values(NamedTuple):
    """The values of ``axis`` from ``low`` to ``high``, both included."""

    axis: Axis
    low: int
    high: int

    @property
    def is_one(self) -> bool:
        return self.low == self.high


def values_of(condition: Expr) -> Values | None:
    """Where ``condition`` holds; None where that is about no axis, or several, or not at values one after the other."""
    match condition:
        case Call(op, (inner,)) if op is NOT:
            return values_beside(inner)
        case Call(op, args) if op is NOT_EQUAL:
            return values_beside(call(EQUAL, *args))
    forms, axes = nonnegative_forms(condition), list(free_axes(condition))
    ends = axis_bounds(axes).get(axes[0]) if len(axes) == 1 else None
    if not forms or ends is None:
        return None
    for form in forms:
        factor = form.coefficient(axes[0])
        if not factor or len(form.terms) > 1:
            return None
        ends = narrowed(ends, factor, form.constant)
    return Values(axes[0], *ends)


def values_beside(condition: Expr, within: Values | None = None) -> Values | None:
    """Where ``condition`` does not hold, of the values ``within``, or of all."""
    own = values_of(condition)
    if own is None or (within is not None and own.axis is not within.axis):
        return None
    axis, low, high = Values(own.axis, *axis_bounds([own.axis])[own.axis]) if within is None else within
    if own.high < low or own.low > high:
        return Values(axis, low, high)
    if own.low <= low:
        return Values(axis, own.high + 1, high)
    return Values(axis, low, own.low - 1) if own.high >= high else None


def condition_of(values: Values) -> Expr | None:
    """A comparison that holds at ``values`` alone; None where that takes two."""
    low, high = axis_bounds([values.axis])[values.axis]
    if values.is_one:
        return call(EQUAL, values.axis, values.low)
    if values.low == low:
        return call(LESS_EQUAL, values.axis, values.high)
    return call(GREATER_EQUAL, values.axis, values.low) if values.high == high else None

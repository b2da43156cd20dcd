"""Index expressions without the divisions that the ranges of their axes decide, and bodies without such comparisons.

Conditions on one axis as the values of it at which they hold, one after the other: what a chain of choices by an axis leaves to each of its branches.

``select(c == 0, f, select(c == 1, g, h))`` leaves the values from 2 on to ``h``, and 2 alone where ``c`` has three.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jaxte.lang.divisions import Division, Quotient, division
from jaxte.lang.expr import Axis, Call, Expr, as_expr, call
from jaxte.lang.limits import CASES
from jaxte.lang.operators import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, NOT, NOT_EQUAL
from jaxte.lang.walk import free_axes, postorder, rewrite, substitute
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.conditions import narrowed
from jaxte.sets.index_forms import is_index, nonnegative_forms
from jaxte.sets.intervals import (
    Bounds,
    axis_bounds,
    decide,
    dims_of,
    highest,
    interval,
    known,
    lowest,
    nonnegative,
    single_quotient,
)
from jaxte.sets.linear import Linear, combined
from jaxte.sets.quasi_affine import index_of
from jaxte.sets.tabulate import values_along

_ORDERS = (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL)


def decided(body: Expr) -> Expr:
    """``body`` without comparisons of positions that hold at all of them, or at none."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Call) and node.op in _ORDERS and all(is_index(a) for a in node.args):
            found = decide(node.op, *node.args)
            return node if found is None else as_expr(found)
        return node

    return rewrite(body, rule)


def simplify(index: Expr, table: Mapping[Axis, Expr]) -> Expr:
    """``index`` with ``table`` put in, and divisions resolved that are the same over the whole box."""
    current = normal(substitute(index, table))
    while found := _decided(current):
        current = normal(substitute(current, found))
    return current


@lru_cache(maxsize=8192)
def _decided(index: Expr) -> Mapping[Expr, Expr]:
    """The divisions in ``index`` that are the same over the whole box, and what they are."""
    found: dict[Expr, Expr] = {}
    changed: set[Expr] = set()
    for node in postorder(index):  # what stands around a node that changes is looked at the next time
        if not changed.isdisjoint(node.children):
            changed.add(node)
        elif node.children and (replacement := _resolved(node)) is not None:
            found[node] = replacement
            changed.add(node)
    return found


@lru_cache(maxsize=8192)
def _resolved(node: Expr) -> Expr | None:
    match division(node):
        case Division(numerator, int() as divisor) as divided:
            if divisor <= 0:
                return None
            progression = _progression(node)
            if progression is not None:
                return progression
            quotient = single_quotient(linear(numerator), divisor)
            if quotient is None:
                return None
            if isinstance(divided, Quotient):
                whole = from_linear(quotient)
                return None if whole is node else whole
            rest = from_linear(linear(numerator) - quotient * divisor)
            return None if rest is node or _mentions(rest, node) else rest
    match node:
        case Call(op, (a, b)) if op.name in ("minimum", "maximum"):
            low = lowest(linear(a) - linear(b))
            high = highest(linear(a) - linear(b))
            if low is not None and nonnegative(low):
                return b if op.name == "minimum" else a
            if high is not None and nonnegative(high * -1):
                return a if op.name == "minimum" else b
    return None


def _progression(node: Expr) -> Expr | None:
    """A division of one dimension of few points, where its values are evenly spaced."""
    dims = dims_of(node)
    # Over so few points of a dimension the values of a division are looked at one by one.
    if len(dims) != 1 or not 2 <= (known(dims[0].extent) or 0) <= CASES:
        return None
    values = values_along(index_of(node), dims[0])
    first = known(dims[0].lo)
    if values is None or first is None or len(steps := set(np.diff(values).tolist())) > 1:
        return None
    (step,) = steps
    return from_linear(Linear({dims[0]: step} if step else {}, int(values[0]) - step * first))


def _mentions(expr: Expr, part: Expr) -> bool:
    return any(node is part for node in postorder(expr))


def resolved(form: Linear, bounds: Bounds) -> Linear:
    """``form`` with the ``//`` and ``%`` that the bounds of the axes decide resolved."""
    return combined([(c, _resolved_atom(atom, bounds)) for atom, c in form.terms.items()], form.constant)


def _resolved_atom(atom: Expr, bounds: Bounds) -> Linear:
    divided = division(atom)
    if divided is not None and (divisor := divided.base) is not None:
        numerator = linear(divided.number)
        whole, rest = _balanced(numerator, divisor)
        for quotient, left in ((Linear({}), numerator), (whole, rest)):
            known = interval(left, bounds)
            if known is not None and known[0] // divisor == known[1] // divisor:
                quotient = quotient + Linear({}, known[0] // divisor)
                return quotient if isinstance(divided, Quotient) else numerator - quotient * divisor
    known = interval(Linear({atom: 1}), bounds)
    return Linear({}, known[0]) if known is not None and known[0] == known[1] else Linear({atom: 1})


def _balanced(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """``form == whole * divisor + rest`` with the coefficients of ``rest`` as near to 0 as can be."""
    whole = Linear({a: (2 * c + divisor) // (2 * divisor) for a, c in form.terms.items() if 2 * c > divisor})
    return whole, form - whole * divisor


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

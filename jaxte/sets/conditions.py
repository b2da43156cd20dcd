"""Affine conditions: as forms that are not negative, taken apart, written tidily, and without those that others imply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from jaxte.lang import operators as ops
from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import Axis, Call, Const, Expr, Var, call
from jaxte.lang.walk import all_of, rewrite
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.domain import IntegerSet, Range
from jaxte.sets.index_forms import AFFINE_COMPARISONS, is_index, nonnegative_forms
from jaxte.sets.intervals import axis_bounds, interval
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.linear import Linear

_NEGATED = {
    ops.EQUAL: ops.NOT_EQUAL,
    ops.NOT_EQUAL: ops.EQUAL,
    ops.LESS: ops.GREATER_EQUAL,
    ops.GREATER_EQUAL: ops.LESS,
    ops.GREATER: ops.LESS_EQUAL,
    ops.LESS_EQUAL: ops.GREATER,
}


class Limit(NamedTuple):
    """``axis >= end`` of a lower limit, else ``axis <= end``."""

    end: Linear
    is_lower: bool


def limit_of(condition: Expr, axis: Axis) -> Limit | None:
    """The limit that an affine comparison sets to ``axis``; None where it is another condition, or about a multiple of the axis."""
    forms = nonnegative_forms(condition)
    factor = forms[0].coefficient(axis) if len(forms) == 1 else 0
    return Limit(forms[0].without(axis) * -factor, factor > 0) if abs(factor) == 1 else None


def narrowed(ends: tuple[int, int], factor: int, constant: int) -> tuple[int, int]:
    """The values within inclusive ``ends`` at which ``factor * value + constant`` is at least 0."""
    low, high = ends
    return (max(low, -(constant // factor)), high) if factor > 0 else (low, min(high, constant // -factor))


def positive(condition: Expr) -> Expr:
    """A negated comparison as the opposite comparison."""
    match condition:
        case Call(op, (Call(inner, args),)) if op is ops.NOT and inner in ops.COMPARISONS:
            if all(a.weak and is_index(a) for a in args):
                return call(_NEGATED[inner], *args)
    return condition


@lru_cache(maxsize=4096)
def tidy(condition: Expr) -> Expr:
    """``condition`` with each affine comparison in a form without negative terms."""

    def rule(node: Expr) -> Expr:
        if not (isinstance(node, Call) and node.op.name in AFFINE_COMPARISONS):
            return node
        forms = nonnegative_forms(node)
        return _tidy_comparison(forms[0], node.op is ops.EQUAL) if forms else node

    compared = [n for n in all_of(Call, condition) if n.op.name in AFFINE_COMPARISONS]
    if not compared:
        return condition
    return rule(condition) if compared[0] is condition else rewrite(condition, rule)


def _tidy_comparison(form: Linear, equality: bool) -> Expr:
    """``form >= 0`` (or ``== 0``) as ``negative part <= positive part``."""
    form = linear(from_linear(form))
    right = Linear({a: c for a, c in form.terms.items() if c > 0})
    left = Linear({a: -c for a, c in form.terms.items() if c < 0})
    constant = form.constant
    if not right.terms and constant > 0 and not equality:
        return from_linear(left) < from_linear(Linear({}, constant + 1))
    if constant < 0 and not left.terms:
        left, constant = left + Linear({}, -constant), 0
    elif constant == -1 and not equality:
        return from_linear(left) < from_linear(right)
    if not equality:
        equality = _is_remainder(left, 0, right + Linear({}, constant)) or _is_remainder(
            right, 1, left + Linear({}, -constant)
        )
    low, high = from_linear(left), from_linear(right + Linear({}, constant))
    if equality:
        return call(ops.EQUAL, low, high) if isinstance(high, Const) else call(ops.EQUAL, high, low)
    return low <= high


def _is_remainder(form: Linear, last: int, end: Linear) -> bool:
    """Whether ``form`` is an ``e % c`` and ``end`` the first (or ``last``) of the values that it takes."""
    if form.constant or len(form.terms) != 1 or end.terms:
        return False
    ((atom, factor),) = form.terms.items()
    match division(atom):
        case Remainder(_, int() as divisor) if factor == 1:
            return end.constant == (divisor - 1 if last else 0)
    return False


def prune(
    conditions: Sequence[Expr], axes: Sequence[Expr], ranges: Mapping[Expr, Range | None] | None = None
) -> list[Expr]:
    """``conditions`` without those that the ranges of ``axes`` and the other conditions imply."""
    kept = [c for c in dict.fromkeys(conditions) if not _holds_in_box(c, axes, ranges or {})]
    if not kept:
        return []
    undecided = list(kept)
    for condition in kept:
        if not is_decidable(condition):
            continue
        others = [c for c in undecided if c is not condition]
        if IntegerSet(axes, others, ranges).implies(condition):
            undecided = others
    return undecided


def _holds_in_box(condition: Expr, axes: Sequence[Expr], ranges: Mapping[Expr, Range | None]) -> bool:
    """Interval arithmetic: whether an affine comparison holds for all values of the axes."""
    forms = nonnegative_forms(condition)
    if not forms:
        return isinstance(condition, Const) and condition.value is True
    bounds = axis_bounds(a for a in axes if isinstance(a, Axis) and a not in ranges)
    for form in forms:
        known = interval(form, bounds)
        if known is None or known[0] < 0:
            return _symbolic_holds(forms, ranges)
    return True


def _symbolic_holds(forms: Sequence[Linear], ranges: Mapping[Expr, Range | None]) -> bool:
    for form in forms:
        least = Linear({}, form.constant)
        for atom, coefficient in form.terms.items():
            if isinstance(atom, Axis) and atom not in ranges:
                end = linear(atom.lo) if coefficient > 0 else linear(atom.hi) - Linear({}, 1)
                least = least + end * coefficient
            else:
                least = least + Linear({atom: coefficient})
        sizes = least.terms
        if not all(isinstance(a, Var) and c > 0 for a, c in sizes.items()):
            return False
        if least.constant + sum(c * a.least for a, c in sizes.items() if isinstance(a, Var)) < 0:
            return False
    return True


def halves(condition: Expr) -> Iterator[Expr]:
    """Conditions that hold together where ``condition`` does: itself, if it is no comparison of a maximum."""
    match condition:
        case Call(op, (Call(inner, args), bound)) if op in (ops.LESS, ops.LESS_EQUAL) and is_index(args[0]):
            if inner is ops.MAXIMUM or inner is ops.ABS:
                for side in args if inner is ops.MAXIMUM else (args[0], -args[0]):
                    yield call(op, side, bound)
                return
    yield condition


def same_condition(a: Expr, b: Expr) -> bool:
    """Whether two comparisons of positions hold at the same ones."""
    first, second = nonnegative_forms(a), nonnegative_forms(b)
    return len(first) == len(second) == 1 and is_zero(first[0] - second[0])


def is_zero(form: Linear) -> bool:
    return form.is_constant and form.constant == 0

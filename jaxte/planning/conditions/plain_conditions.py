"""Conditions and guards by where they hold, however they are spelled.

    i // 2 * 2 == i,   i % 2 < 1,   i % 2 != 1   and   (i + 1) // 2 == i // 2   are   i % 2 == 0
    (2 * i + r) % 2 == 0, where r is below 2                                    is    r == 0
    8 * q + j < 16, where j is below 8                                          is    q <= 1
    i // 4 == 3                                                                 is    12 <= i and i < 16
    select(i == 0, x[n - 1], x[maximum(i - 1, 0)])                              is    select(i == 0, x[n - 1], x[i - 1])

A condition on one axis is a range of positions, or those of one remainder. A careful writer keeps an index in range that a choice keeps in range
already: without the second guard the read is a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations
from math import gcd
from operator import is_

import numpy as np

from jaxte.lang.divisions import Division, Remainder, division, divisions
from jaxte.lang.expr import FALSE, TRUE, Axis, Call, Const, Expr, Read, Reduce, call, conjuncts
from jaxte.lang.limits import MOST_PARTS, POSITIONS
from jaxte.lang.operators import AND, COMPARISONS, EQUAL, MAXIMUM, MINIMUM, MOD, NOT, NOT_EQUAL, SELECT, Op
from jaxte.lang.walk import all_of, free_axes, postorder, reads_of, rewrite, substitute
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.conditions import narrowed, positive, tidy
from jaxte.sets.index_forms import is_index, linear_or_none, nonnegative_forms
from jaxte.sets.intervals import axis_bounds, interval, known, reach
from jaxte.sets.linear import Linear
from jaxte.sets.resolved import simplify
from jaxte.sets.tabulate import values_along


def with_plain_conditions(body: Expr) -> Expr:
    """``body`` with comparisons of quotients, remainders and several digits as comparisons of an axis, or of one remainder."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Call) or not (node.op in COMPARISONS or node.op is NOT):
            return node
        return _plain(_undivided(node)) if _has_quotients(node) else _leading(node)

    for node in all_of(Call, body):
        if node.op in COMPARISONS:
            return rewrite(body, rule)
    return body


def _has_quotients(node: Call) -> bool:
    """Whether ``node`` compares indices with quotients or remainders, negated or not, and not one remainder with a number."""
    inner = node.args[0] if node.op is NOT else node
    if not isinstance(inner, Call) or inner.op not in COMPARISONS:
        return False
    if not all(a.weak and is_index(a) for a in inner.args):
        return False
    if node.op is EQUAL and isinstance(node.args[1], Const):
        match division(node.args[0]):
            case Remainder(Axis()):
                return False
    return bool(divisions(node))


def _undivided(condition: Expr) -> Expr:
    """``condition`` without the divisions that the ranges of its axes decide: ``(2 * i + r) % 2 == 0`` for ``r`` below 2 is ``r == 0``."""
    assert isinstance(condition, Call)
    undivided = _undivided if condition.op is NOT else partial(simplify, table={})
    args = list(map(undivided, condition.args))
    return condition if all(map(is_, args, condition.args)) else call(condition.op, *args)


def _leading(condition: Expr) -> Expr:
    """A comparison of a number of several digits, as one of those that decide it: ``8 * q + j < 16`` for ``j`` below 8 is ``q < 2``."""
    forms = nonnegative_forms(condition)
    if len(forms) != 1 or len(forms[0].terms) < 2:
        return condition
    (form,) = forms
    unit = max(map(abs, form.terms.values()))
    leading = {a: c // unit for a, c in form.terms.items() if c % unit == 0}
    rest = Linear({a: c for a, c in form.terms.items() if a not in leading}, form.constant)
    ends = reach(rest) if rest.terms else None
    if ends is None or ends[0] // unit != ends[1] // unit:
        return condition
    return _plain(tidy(from_linear(Linear(leading, ends[0] // unit)) >= 0))


def _plain(condition: Expr) -> Expr:
    """``condition`` by the positions at which it holds; as it is where these are neither a range nor have one remainder."""
    axes = list(free_axes(condition))
    if len(axes) != 1 or not 0 < (known(axes[0].extent) or 0) <= POSITIONS:
        return condition
    held, low = values_along(condition, axes[0]), known(axes[0].lo)
    if held is None or low is None:
        return condition
    positions, truth = np.arange(low, low + len(held)), held.astype(bool)
    for found in (
        _range(axes[0], positions, truth),
        _one_remainder(axes[0], positions, truth, EQUAL),
        _one_remainder(axes[0], positions, ~truth, NOT_EQUAL),
    ):
        if found is not None:
            return found
    return condition


def _range(axis: Axis, positions: np.ndarray, truth: np.ndarray) -> Expr | None:
    """The condition that ``axis`` is between the first and the last of the positions that are ``truth``, if all between are, too."""
    found = positions[truth]
    if not len(found):
        return FALSE
    first, last = int(found[0]), int(found[-1])
    if last - first + 1 != len(found):
        return None
    begin = axis >= first if first > positions[0] else TRUE
    end = axis <= last if last < positions[-1] else TRUE
    return call(EQUAL, axis, first) if first == last and len(positions) > 1 else call(AND, begin, end)


def _one_remainder(axis: Axis, positions: np.ndarray, truth: np.ndarray, op: Op) -> Expr | None:
    """The comparison by ``op`` of a remainder of ``axis`` with that which the positions that are ``truth`` have, and no others."""
    found = positions[truth]
    if len(found) < 2:
        return None
    step = gcd(*(int(p - found[0]) for p in found))
    remainder = int(found[0]) % step
    every = positions % step == remainder
    return call(op, call(MOD, axis, step), remainder) if len(found) == every.sum() else None


_HELD = (MAXIMUM, MINIMUM)
Bounds = dict[Expr, tuple[int, int]]


def with_narrow_reads(body: Expr) -> Expr:
    """``body`` with maxima, minima, quotients and remainders in indices as what a choice around the read leaves of them."""

    def rule(node: Expr) -> Expr:
        match node:
            case Call(op, (test, taken, other)) if op is SELECT and any(map(_holds, (taken, other))):
                first, second = _narrowed(taken, conjuncts(test)), _narrowed(other, [call(NOT, test)])
                return node if first is taken and second is other else call(SELECT, test, first, second)
            case Reduce(reducer, exprs, axes, where) if where is not TRUE and any(map(_holds, exprs)):
                narrow = [_narrowed(e, conjuncts(where)) for e in exprs]
                return (
                    node
                    if all(map(is_, narrow, exprs))
                    else Reduce(reducer, narrow, axes, where, node.position)
                )
        return node

    return rewrite(body, rule) if _holds(body) else body


def _holds(node: Expr) -> bool:
    """Whether an index in ``node`` has a maximum, a minimum, a quotient or a remainder of positions."""
    return any(_has_ends(i) for read in reads_of(node) for i in read.indices if not reads_of(i))


def _has_ends(index: Expr) -> bool:
    return any(isinstance(n, Call) and (n.op in _HELD or division(n) is not None) for n in postorder(index))


def _narrowed(branch: Expr, conditions: Sequence[Expr]) -> Expr:
    """``branch`` where ``conditions`` hold."""
    table: dict[Expr, Expr] = {}
    for read in reads_of(branch):
        # several indices with divisions are the digits of one number, which are read as they are stored
        is_digit = sum(bool(divisions(i)) for i in read.indices) > 1
        indices = [i if reads_of(i) else _resolved(i, conditions, is_digit) for i in read.indices]
        if any(new is not old for new, old in zip(indices, read.indices, strict=True)):
            table[read] = Read(read.tensor, indices)
    return substitute(branch, table)


def _resolved(index: Expr, conditions: Sequence[Expr], is_digit: bool = False) -> Expr:
    """``index`` with each maximum and minimum as the side that it always is where ``conditions`` hold, and numbers that are divided with one quotient there as that.

    Divisions stay in an index that ``is_digit``.
    """
    if not _has_ends(index):
        return index
    bounds = _ends(free_axes(index), conditions)
    said = [form for c in map(positive, conditions) for form in nonnegative_forms(c)]
    chains = combinations(said, 2) if len(said) <= MOST_PARTS else ()
    held = [Linear({}, 0), *said, *(one + other for one, other in chains)]

    def exceeds(first: Linear, second: Linear) -> bool:
        """Whether ``first`` is at least ``second``: their difference is what a condition says is not negative, or two of them, ``k < w`` and ``i + w < n``, and something more."""
        return any(
            (ends := interval(first - second - form, bounds)) is not None and ends[0] >= 0 for form in held
        )

    def rule(node: Expr) -> Expr:
        if (own := division(node)) is not None:
            return node if is_digit else _divided(node, own, bounds)
        if not (isinstance(node, Call) and node.op in _HELD and all(map(is_index, node.args))):
            return node
        first, second = map(linear, node.args)
        if exceeds(first, second):
            return node.args[node.op is not MAXIMUM]
        return node.args[node.op is MAXIMUM] if exceeds(second, first) else node

    return rewrite(index, rule)


def _divided(node: Expr, own: Division, bounds: Bounds) -> Expr:
    """The quotient or the remainder ``node``, ``(i + 8) % 16``, without a division where its number has one quotient within ``bounds``: ``i + 8`` where ``i < 8``."""
    form = linear_or_none(own.number)
    ends = interval(form, bounds) if form is not None else None
    if form is None or ends is None or own.base is None or ends[0] // own.base != ends[1] // own.base:
        return node
    quotient = ends[0] // own.base
    if isinstance(own, Remainder):
        return from_linear(form - Linear({}, quotient * own.base))
    return Const(quotient)


def _ends(axes: Iterable[Axis], conditions: Sequence[Expr]) -> Bounds:
    """Inclusive bounds of ``axes`` where ``conditions`` on single ones of them hold."""
    found = axis_bounds(axes)
    for condition in map(positive, conditions):
        for axis, (low, high) in list(found.items()):
            if isinstance(condition, Call) and condition.op is NOT_EQUAL and condition.args[0] is axis:
                value = condition.args[1]
                at = known(value)
                found[axis] = (low + (at == low), high - (at == high))
            elif isinstance(axis, Axis) and divisions(condition) and set(free_axes(condition)) == {axis}:
                found[axis] = _among_held(condition, axis, low, high)
            for form in nonnegative_forms(condition):
                if len(form.terms) == 1 and (factor := form.coefficient(axis)):
                    found[axis] = narrowed(found[axis], factor, form.constant)
    return {axis: ends for axis, ends in found.items() if ends[0] <= ends[1]}


def _among_held(condition: Expr, axis: Axis, low: int, high: int) -> tuple[int, int]:
    """The first and the last position from ``low`` to ``high`` at which ``condition`` holds, as an even one."""
    truth, first = values_along(condition, axis), known(axis.lo)
    if truth is None or first is None:
        return low, high
    (held,) = np.nonzero(truth[low - first : high + 1 - first])
    return (low + int(held[0]), low + int(held[-1])) if len(held) else (low, high)

"""Indices of bits and of choices as index arithmetic: ``x[i ^ (i >> 1)]``, ``x[select(i + k < n, i + k, 2 * n - 2 - (i + k))]``.

Bits of one position are digits of it; what is made of the bits of several is looked up in a table of positions. A condition is a number, 0 or
1. So a choice is the lesser or the greater of what it chooses among where it always takes that, as reflections do, a remainder where it
goes around, and otherwise the lesser of the two with the other out of reach. All that follows, ranges, equations and views, knows only
sums, ``//``, ``%``, minima and maxima.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxte.lang import operators as ops
from jaxte.lang.dtypes import INT32_BITS, is_integer
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr, call
from jaxte.lang.walk import all_of, free_axes, postorder, reads_of, rewrite
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import known, reach
from jaxte.sets.quasi_affine import index_of, indicator, quasi_affine
from jaxte.tensors.bodies.piecewise_indices import (
    Guards,
    at_tables,
    chooses_often,
    guards_of_tables,
    values_over,
)

NO_GUARDS: Guards = {}

_BY = {
    ops.LEFT_SHIFT: lambda e, by: e * 2**by,
    ops.RIGHT_SHIFT: lambda e, by: call(ops.FLOOR_DIVIDE, e, 2**by),
    ops.POWER: lambda e, by: as_expr(int(e.value) ** by),  # type: ignore[attr-defined]
}


def with_chosen_powers(body: Expr) -> Expr:
    """``body`` with shifts by positions and powers of them, in indices, as choices by position: ``1 << k`` is 1, 2, 4, ..."""
    return _in_conditions(_in_indices(body, _power), _power, _parts(body, tuple(_BY)))


def with_plain_indices(axes: Sequence[Axis], body: Expr) -> Expr:
    """``body``, of ``axes``, with operations on bits, and choices, in indices as sums, quotients, remainders, minima and maxima."""
    guards = guards_of_tables(axes, body)
    return _in_conditions(_in_indices(body, _plain, guards), _plain, _parts(body, (ops.SELECT,)))


def _in_indices(body: Expr, rule: Callable[[Call], Expr], guards: Guards = NO_GUARDS) -> Expr:
    def within_read(node: Expr) -> Expr:
        if not isinstance(node, Read):
            return node
        given = _going_around(node) if rule is _plain else node
        indices = [i if reads_of(i) or chooses_often(i) else _ruled(i, rule) for i in given.indices]
        read = Read(given.tensor, indices)
        return at_tables(read, guards.get(node, ())) if rule is _plain else read

    return rewrite(body, within_read)


def _in_conditions(body: Expr, rule: Callable[[Call], Expr], parts: dict[Expr, None]) -> Expr:
    """``body`` with comparisons of what indices have for ``parts`` written as these are, so that they are understood as guards of them."""
    if not parts:
        return body

    def at(node: Expr) -> Expr:
        compares = isinstance(node, Call) and node.op in ops.COMPARISONS and not reads_of(node)
        if not compares or chooses_often(node) or not any(n in parts for n in postorder(node)):
            return node
        return node.rebuild([_ruled(arg, rule) for arg in node.children])

    return rewrite(body, at)


def _ruled(index: Expr, rule: Callable[[Call], Expr]) -> Expr:
    return rewrite(index, lambda n: rule(n) if isinstance(n, Call) and is_integer(n.dtype) else n)


def _parts(body: Expr, kinds: Sequence[ops.Op]) -> dict[Expr, None]:
    """The operations of one of ``kinds`` in indices of ``body``."""
    nodes = [n for read in reads_of(body) for index in read.indices for n in postorder(index)]
    return dict.fromkeys(n for n in nodes if isinstance(n, Call) and n.op in kinds and is_integer(n.dtype))


def _ends(expr: Expr) -> tuple[int, int] | None:
    """The least and the greatest value of an index; None where they are no numbers, or it is none."""
    form = linear_or_none(expr)
    return None if form is None else reach(form)


def _power(node: Call) -> Expr:
    if node.op not in _BY or isinstance(node.args[1], Const):
        return node
    base, by = node.args
    ends = _ends(by)
    if ends is None or ends[0] < 0 or ends[1] > INT32_BITS or (node.op is ops.POWER and not _is_whole(base)):
        return node
    *others, last = range(ends[0], ends[1] + 1)
    result: Expr = _BY[node.op](base, last)
    for at in reversed(others):
        result = call(ops.SELECT, call(ops.LESS, by, at + 1), _BY[node.op](base, at), result)
    return result


def _is_whole(base: Expr) -> bool:
    return isinstance(base, Const) and type(base.value) is int


def _plain(node: Call) -> Expr:
    found = _choice(*node.args) if node.op is ops.SELECT else None
    return node if found is None else found


# --- bits


# --- choices


def _going_around(read: Read) -> Read:
    """``read`` with choices that go around its tensor, ``select(t >= n, t - n, t)`` among others, as remainders."""
    indices = [
        i if reads_of(i) else _remainder(i, known(as_expr(e)))
        for i, e in zip(read.indices, read.tensor.shape, strict=True)
    ]
    return Read(read.tensor, indices)


def _remainder(index: Expr, size: int | None) -> Expr:
    """``t % size`` for an ``index`` that is it at every point, where ``t`` is something that it chooses; else ``index``."""
    choices = [n for n in all_of(Call, index) if n.op is ops.SELECT]
    axes = list(free_axes(index))
    values = values_over(axes, index) if choices and size else None
    if values is None or size is None:
        return index
    for arm in dict.fromkeys(arm for choice in choices for arm in choice.args[1:]):
        form = linear_or_none(arm)
        if form is not None and all(isinstance(atom, Axis) for atom in form.terms):
            turned = call(ops.MOD, arm, size)
            own = values_over(axes, turned)
            if own is not None and (own == values).all():
                return turned
    return index


def _choice(test: Expr, taken: Expr, other: Expr) -> Expr | None:
    """A choice between two indices; None where what decides is no condition on positions."""
    if taken is other:
        return taken
    holds = indicator(test)
    if holds is None or any(linear_or_none(e) is None for e in (holds, taken, other)):
        return None
    found = _extremum(test, taken, other)
    if found is None:
        found = _shifted(test, taken, other, holds)
    return _lesser(taken, other, holds) if found is None else found


def _extremum(test: Expr, taken: Expr, other: Expr) -> Expr | None:
    """The lesser or the greater of two indices, where that is what is chosen at every point."""
    axes = list(dict.fromkeys(a for e in (test, taken, other) for a in free_axes(e)))
    exprs = (quasi_affine(test), index_of(taken), index_of(other))
    holds, first, second = (values_over(axes, e) for e in exprs)
    if holds is None or first is None or second is None:
        return None
    by = np.where(holds, first - second, second - first)  # what is chosen less what is not
    if (by <= 0).all():
        return call(ops.MINIMUM, taken, other)
    return call(ops.MAXIMUM, taken, other) if (by >= 0).all() else None


def _shifted(test: Expr, taken: Expr, other: Expr, holds: Expr) -> Expr | None:
    """Two indices that differ by a number: a step by it where the condition holds, which is a quotient where it goes around once."""
    step = linear(taken - other)
    if step.terms:
        return None
    turns = _turns(test, abs(step.constant))
    return from_linear(linear(other + step.constant * (holds if turns is None else turns)))


def _turns(test: Expr, period: int) -> Expr | None:
    """1 where ``test``, a comparison, holds, else 0, as a quotient by ``period``; None where its sides differ by more than that."""
    if (
        not isinstance(test, Call)
        or test.op not in (ops.LESS, ops.LESS_EQUAL, ops.GREATER, ops.GREATER_EQUAL)
        or not period
    ):
        return None
    left, right = test.args
    above = left - right if test.op in (ops.GREATER, ops.GREATER_EQUAL) else right - left
    above = above - 1 if test.op in (ops.GREATER, ops.LESS) else above  # holds where this is not negative
    ends = _ends(above)
    if ends is None or ends[0] < -period or ends[1] >= period:
        return None
    return call(ops.FLOOR_DIVIDE, above + period, period)


def _lesser(taken: Expr, other: Expr, holds: Expr) -> Expr | None:
    """The lesser of two indices, of which the one that is not chosen is moved out of reach."""
    ends = _ends(taken - other)
    if ends is None:
        return None
    most = max(map(abs, ends))
    return call(ops.MINIMUM, taken + most * (1 - holds), other + most * holds)

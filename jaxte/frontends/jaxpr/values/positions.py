"""Index arithmetic that knows the ranges of axes: what is composed of views comes out as one index expression.

Index expressions found in arrays of positions: affine, around the end of an axis, divided, held at the ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import lcm
from operator import is_
from typing import Any

import numpy as np

from jaxte.lang.divisions import Division, Quotient, Remainder, division
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import FALSE, TRUE, Axis, Call, Expr, Read, Reduce, as_expr
from jaxte.lang.limits import TABLE
from jaxte.lang.operators import COMPARISONS, MAXIMUM, MINIMUM
from jaxte.lang.walk import postorder
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.intervals import decide, reach
from jaxte.sets.linear import Linear


def quotient(index: Expr, divisor: int) -> Expr:
    """``index // divisor``, without a division where the range allows."""
    return _divided(index, divisor)[0]


def remainder(index: Expr, divisor: int) -> Expr:
    """``index % divisor``, without a division where the range allows."""
    return _divided(index, divisor)[1]


def _divided(index: Expr, divisor: int) -> tuple[Expr, Expr]:
    form = linear(index)
    whole = Linear({a: c // divisor for a, c in form.terms.items() if c % divisor == 0})
    rest = form - whole * divisor
    shift = rest.constant // divisor
    near = rest - Linear({}, shift * divisor)
    found = reach(near)
    if found is not None and found[0] // divisor == found[1] // divisor:
        steps = found[0] // divisor
        quotient = whole + Linear({}, shift + steps)
        return from_linear(quotient), from_linear(near - Linear({}, steps * divisor))
    return index // divisor, index % divisor


def clamped(index: Expr, low: int, high: int) -> Expr:
    """``index`` held between ``low`` and ``high``, as far as its range asks for it."""
    found = reach(linear(index))
    if found is None or found[0] < low:
        index = _extremum(MAXIMUM, index, low)
    return index if found is not None and found[1] <= high else _extremum(MINIMUM, index, high)


def _extremum(op: object, index: Expr, limit: int) -> Expr:
    return as_expr(index)._apply(op, (index, as_expr(limit)))  # type: ignore[arg-type]


def decided(condition: Expr) -> Expr:
    """A comparison of index expressions as TRUE or FALSE where the ranges say which."""
    if not (isinstance(condition, Call) and condition.op in COMPARISONS):
        return condition
    left, right = condition.args
    if not (_is_position(left) and _is_position(right)):
        return condition
    try:
        holds = decide(condition.op, left, right)
    except IndexExpressionError:
        return condition
    return condition if holds is None else TRUE if holds else FALSE


@lru_cache(maxsize=4096)  # what is composed of views has the indices of these
def _is_position(expr: Expr) -> bool:
    return (
        expr.weak
        and expr.dtype == "int32"
        and not any(isinstance(n, (Read, Reduce)) for n in postorder(expr))
    )


def replaced(body: Expr, table: Mapping[Axis, Expr]) -> Expr:
    """``body`` with axes replaced by index expressions, its indices and conditions simplified for their ranges."""
    memo: dict[Expr, Expr] = {axis: index for axis, index in table.items()}  # noqa: C416
    for node in postorder(body):
        if node in memo:
            continue
        children = [memo[child] for child in node.children]
        same = all(map(is_, children, node.children))
        memo[node] = node if same else _rebuilt(node, children)
    return memo[body]


def _rebuilt(node: Expr, children: list[Expr]) -> Expr:
    if isinstance(node, Read):
        return Read(node.tensor, [normal(i) if _is_position(i) else i for i in children])
    match division(node):
        case Division(_, int() as divisor) as found if _is_position(node):
            return (quotient if isinstance(found, Quotient) else remainder)(children[0], divisor)
    return decided(node.rebuild(children))


def period_along(body: Expr, axis: Axis) -> int | None:
    """After how many positions of ``axis`` the elements ``body`` are the same again, as those of an array beside itself are; None where nothing says so."""
    periods: set[int] = set()
    bare: dict[Expr, bool] = {}
    for node in postorder(body):
        bare[node] = node is axis or any(bare[child] for child in node.children)
        match division(node):
            case Remainder(number, int() as base) if bare[number]:
                whole = linear(number)
                if whole.coefficient(axis) and not any(bare[a] for a in whole.terms if a is not axis):
                    periods.add(base)
                    bare[node] = False
    return lcm(*periods) if periods and not bare[body] else None


def positions_in(array: Any, i: Sequence[Any], extent: int, period: int | None = None) -> Expr | None:
    """An index expression of ``i`` whose values are those of the integer ``array``, positions in an axis of ``extent``.

    Tried are ``c + sum of a_d * i_d``, the same modulo ``extent`` and other periods, divided by a number, and held at both ends; each is
    compared with the whole array, so that what is returned is right. Where the elements of the axis have a ``period``, so may the positions, which
    then are outside of the axis too.
    """
    values = np.asarray(array, dtype=np.int64)
    if values.size == 0 or values.size > TABLE:
        return None
    grids = np.ix_(*(np.arange(n) for n in values.shape))
    for coefficients, constant in _slopes(values):
        form = constant + sum(a * g for a, g in zip(coefficients, grids, strict=True))
        index = _expression(coefficients, constant, i)
        if np.array_equal(np.broadcast_to(form, values.shape), values):
            return index
        if extent > 1 and np.array_equal(np.broadcast_to(form % extent, values.shape), values):
            return remainder(index, extent)
        if period is not None and not np.any((form - values) % period):
            return index
        if np.array_equal(np.broadcast_to(np.clip(form, 0, extent - 1), values.shape), values):
            return clamped(index, 0, extent - 1)
    return _divided_positions(values, i, extent)


def _slopes(values: np.ndarray) -> Iterator[tuple[list[int], int]]:
    """Affine forms through the first elements, and through those in the middle, where nothing is held at an end."""
    origins = [(0,) * values.ndim, tuple(n // 2 for n in values.shape)]
    for origin in dict.fromkeys(origins):
        slopes = []
        for d in range(values.ndim):
            after = list(origin)
            after[d] += 1 if origin[d] + 1 < values.shape[d] else -1
            step = int(values[tuple(after)] - values[origin]) if values.shape[d] > 1 else 0
            slopes.append(step if after[d] > origin[d] else -step)
        yield slopes, int(values[origin]) - sum(a * n for a, n in zip(slopes, origin, strict=True))


def _expression(coefficients: Sequence[int], constant: int, i: Sequence[Any]) -> Expr:
    result = as_expr(constant)
    for factor, position in zip(coefficients, i, strict=True):
        result = result + factor * as_expr(position)
    return result


def _divided_positions(values: np.ndarray, i: Sequence[Any], extent: int) -> Expr | None:
    """``(a * i + c) // b`` along one axis, all others being of no effect; around the end too, as the digits of numbers are."""
    moving = [d for d in range(values.ndim) if values.shape[d] > 1 and np.any(np.diff(values, axis=d))]
    if len(moving) != 1:
        return None
    (axis,) = moving
    line = values[tuple(slice(None) if d == axis else 0 for d in range(values.ndim))]
    steps = np.flatnonzero(np.diff(line))
    if len(steps) < 1 or np.any(values != np.expand_dims(line, [d for d in range(values.ndim) if d != axis])):
        return None
    span = (
        int(steps[1] - steps[0]) if len(steps) > 1 else max(int(steps[0]) + 1, len(line) - int(steps[0]) - 1)
    )
    height = int(line[steps[0] + 1] - line[steps[0]])
    if abs(height) != 1 or span < 1:
        return None
    shift = span - 1 - int(steps[0])
    own = np.arange(len(line))
    form = (own + shift) // span * height
    index = height * quotient(as_expr(i[axis]) + shift, span) + int(line[0] - form[0])
    if np.array_equal(form + (line[0] - form[0]), line):
        return index
    if extent > 1 and np.array_equal((form + (line[0] - form[0])) % extent, line):
        return remainder(index, extent)
    return None

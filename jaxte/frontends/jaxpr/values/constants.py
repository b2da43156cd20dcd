"""Index expressions found in arrays of positions: affine, around the end of an axis, divided, held at the ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.values.positions import clamped, quotient, remainder
from jaxte.lang.expr import Expr, as_expr

_MOST = 1 << 20


def positions_in(array: Any, i: Sequence[Any], extent: int) -> Expr | None:
    """An index expression of ``i`` whose values are those of the integer ``array``, positions in an axis of ``extent``.

    Tried are ``c + sum of a_d * i_d``, the same modulo ``extent`` and other periods, divided by a number, and held at both ends; each is
    compared with the whole array, so that what is returned is right.
    """
    values = np.asarray(array, dtype=np.int64)
    if values.size == 0 or values.size > _MOST:
        return None
    grids = np.ix_(*(np.arange(n) for n in values.shape))
    for coefficients, constant in _slopes(values):
        form = constant + sum(a * g for a, g in zip(coefficients, grids, strict=True))
        index = _expression(coefficients, constant, i)
        if np.array_equal(np.broadcast_to(form, values.shape), values):
            return index
        if extent > 1 and np.array_equal(np.broadcast_to(form % extent, values.shape), values):
            return remainder(index, extent)
        if np.array_equal(np.broadcast_to(np.clip(form, 0, extent - 1), values.shape), values):
            return clamped(index, 0, extent - 1)
    return _divided(values, i, extent)


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


def _divided(values: np.ndarray, i: Sequence[Any], extent: int) -> Expr | None:
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

"""Between which numbers expressions lie, by how they are defined: positions that are computed and held in range need no mask.

``x[i0[b, t]]`` with ``i0 = cast(floor(minimum(maximum(u, 0), n - 1.001)))`` is in range whatever ``u`` is, and so is ``x[i0[b, t] + 1]``: samples between grid
points, where the point is held at the edges. NaN lies nowhere: as an integer it is no number that the language defines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import ceil, floor, inf, isfinite, trunc

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.limits import LEVELS
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.walk import fold, reads_of
from jaxte.sets.intervals import axis_bounds, known, surely_inside
from jaxte.tensors.facts import values_in
from jaxte.tensors.tensor import Compute

Range = tuple[float, float]  # the least and the greatest number; infinite where there is none

_ANY: Range = (-inf, inf)
_OF_FUNCTIONS: dict[str, Range] = {
    "sigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "sin": (-1.0, 1.0),
    "cos": (-1.0, 1.0),
    "relu6": (0.0, 6.0),
    "cosh": (1.0, inf),
    **dict.fromkeys(("square", "exp", "exp2", "sqrt", "softplus", "erfc"), (0.0, inf)),
}
_MONOTONE: Mapping[str, Callable[[float], float]] = {
    "floor": floor,
    "ceil": ceil,
    "round": round,
    "trunc": trunc,
    "relu": lambda v: max(v, 0.0),
    "stop_gradient": lambda v: v,
}


def is_kept_within(index: Expr, stop: int | None) -> bool:
    """Whether ``index``, a position that is data, lies in ``[0, stop)`` by its definition."""
    low, high = value_range(index)
    return stop is not None and low >= 0 and high < stop


def value_range(expr: Expr) -> Range:
    """The least and the greatest number that ``expr`` may be, each rounded as its dtype is."""
    return _range(expr, LEVELS)


@lru_cache(maxsize=4096)
def _range(expr: Expr, depth: int) -> Range:
    def rule(node: Expr, below: list[Range]) -> Range:
        match node:
            case Const(number) if isinstance(number, (bool, int, float)) and number == number:
                return float(number), float(number)
            case Axis():
                return axis_bounds([node]).get(node, _ANY)
            case Read():
                return _of_elements(node, depth)
            case Reduce() if len(node.exprs) == 1 and not dtypes.is_complex(node.dtype):
                return _rounded(_of_reduction(node, below[0]), node.dtype)
            case Call() if not dtypes.is_complex(node.dtype):
                found = _of_call(node, below)
                return found if _is_chosen(node) else _rounded(found, node.dtype)
        return _ANY

    return fold(expr, rule)  # type: ignore[no-any-return]


def _of_elements(read: Read, depth: int) -> Range:
    """What elements of a tensor lie between, by facts about them or by its definition. Of integers, what is read outside is 0."""
    tensor = read.tensor
    stop = values_in(tensor)
    if isinstance(stop, int):
        low, high = 0.0, stop - 1.0
    elif isinstance(tensor, Compute) and depth:
        low, high = _range(tensor.body, depth - 1)
    else:
        return _ANY
    inside = surely_inside(read) and not any(map(reads_of, read.indices))
    return (low, high) if inside else (min(low, 0.0), max(high, 0.0))


def _of_reduction(node: Reduce, each: Range) -> Range:
    """What elements between two numbers are reduced to; an extremum of none is no number between them."""
    low, high = each
    if node.is_sum:
        return 0.0 if low >= 0 else -inf, 0.0 if high <= 0 else inf
    has_elements = node.where is TRUE and all((known(a.extent) or 0) > 0 for a in node.axes)
    return each if has_elements and node.is_extremum else _ANY


def _of_call(node: Call, below: Sequence[Range]) -> Range:
    name = node.op.name
    match below:
        case [(low, high)]:
            if node.op is NEGATIVE:
                return -high, -low
            if name == "abs":
                least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
                return least, max(abs(low), abs(high))
            if name == "cast":
                return _cast(low, high, node)
            if name in _MONOTONE:
                step = _MONOTONE[name]
                return (step(low) if isfinite(low) else low, step(high) if isfinite(high) else high)
            return _OF_FUNCTIONS.get(name, _ANY)
        case [(a, b), (c, d)]:
            if node.op is ADD:
                return a + c, b + d
            if node.op is SUBTRACT:
                return a - d, b - c
            if name in ("minimum", "maximum"):
                chosen = min if name == "minimum" else max
                return chosen(a, c), chosen(b, d)
            if name == "power" and c == d and c > 0 and c % 2 == 0:
                return 0.0, inf
            if c == d and isfinite(c) and c > 0:
                return _by_number(node, (a, b), c)
            if node.op is MULTIPLY and a == b and isfinite(a) and a > 0:
                return a * c, a * d
            if node.op is MULTIPLY and (node.args[0] is node.args[1] or (min(a, c) >= 0 and max(a, c) < inf)):
                return 0.0 if node.args[0] is node.args[1] else a * c, inf
        case [_, (a, b), (c, d)] if node.op is SELECT:
            return min(a, c), max(b, d)
    return _ANY


def _by_number(node: Call, value: Range, number: float) -> Range:
    low, high = value
    if node.op is MULTIPLY:
        return low * number, high * number
    if node.op is DIVIDE:
        return low / number, high / number
    match None if dtypes.is_inexact(node.dtype) else division(node):
        case Remainder():
            return value if 0 <= low and high < number else (0.0, number - 1)
        case Quotient():
            return low // number if isfinite(low) else low, high // number if isfinite(high) else high
    return _ANY


def _cast(low: float, high: float, node: Call) -> Range:
    if dtypes.is_inexact(node.dtype):
        return low, high
    if node.dtype == "bool" or not isfinite(low) or not isfinite(high):
        return (0.0, 1.0) if node.dtype == "bool" else _ANY
    return (float(trunc(low)), float(trunc(high)))


def _is_chosen(node: Call) -> bool:
    """Whether an integer is one of the operands: it has not wrapped, be they any numbers."""
    return dtypes.is_integer(node.dtype) and (node.op is SELECT or node.op.name in ("minimum", "maximum"))


def _rounded(found: Range, dtype: str) -> Range:
    """``found`` in numbers of ``dtype``: rounding keeps their order. Integers that may have wrapped are any."""
    low, high = found
    if low != low or high != high:
        return _ANY
    if dtypes.is_inexact(dtype):
        kind = np.dtype(dtype).type
        return float(kind(low)), float(kind(high))
    ends = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return found if ends[0] <= low and high <= ends[1] else _ANY

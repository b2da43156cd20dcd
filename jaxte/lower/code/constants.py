"""Arithmetic on numbers: what a body computes from constants, and from positions that a sum was written out for.

``cast((p - 2) * (p - 2)) / 8`` at the position p = 0 of a written-out sum is the number 0.5. Results are those of the dtype
that the array code would compute in, so that no digit changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.dtypes import Kind
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, POWER, SUBTRACT, Op
from jaxte.lower.arrays.elementwise import Arange, Cast, Typed, number
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.vocabulary import Value
from jaxte.sets.intervals import known

Number = int | float
_FLOATS: dict[str, Callable[[Number], Any]] = {"float32": np.float32, "float64": np.float64}
_INTEGERS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_NEUTRAL = {ADD: 0, SUBTRACT: 0, MULTIPLY: 1, DIVIDE: 1}
_EITHER = (ADD, MULTIPLY)
SHORT_INTEGERS = {"int8": 2**7 - 1, "int16": 2**15 - 1}  # and the greatest of each


def numeral(value: Number, kind: Kind) -> Value:
    """A number, written as Python writes it where JAX takes that, of the dtype of ``kind``."""
    code, plain = number(value, kind[0]), number(value)
    return Value(code, (), kind, literal=code == plain, number=value)


def folded(op: Op, operands: Sequence[Value], kind: Kind) -> Value | None:
    """``op`` of numbers as a number; None where an operand is none, or where rounding is not known to be the same."""
    compute = None if kind[1] and kind[0] in _FLOATS else _ARITHMETIC.get(op)
    given = [v.number for v in operands if v.number is not None]
    if compute is None or len(given) < len(operands):
        return None
    with np.errstate(all="ignore"):
        own = [_scalar(n, kind[0]) for n in given]
        if any(n is None for n in own) or (op is DIVIDE and not own[1]):
            return None
        return _numeral_of(compute(*own), kind)


def without_neutral(op: Op, operands: Sequence[Value], kind: Kind) -> Value | None:
    """What a zero is added to or taken from, or a one multiplied with, in the dtype of ``kind`` already; None where there is no such number.

    A sum that is -0.0 without the zero is 0.0 with it; XLA leaves the zero out as well.
    """
    if op not in _NEUTRAL:
        return None
    first, second = operands
    for neutral, rest in ((second, first), (first, second)) if op in _EITHER else ((second, first),):
        if neutral.number == _NEUTRAL[op] and rest.kind == kind and (not rest.literal or neutral.literal):
            return rest
    return None


def negated(op: Op, operands: Sequence[Value], kind: Kind) -> Value | None:
    """What is multiplied with -1, in the dtype of ``kind`` already; None where there is no such number."""
    if op is MULTIPLY:
        for number, rest in (operands, operands[::-1]):
            if number.number == -1 and not rest.literal and rest.kind == kind:
                return rest
    return None


def converted(value: Value, dtype: str) -> Value | None:
    """The number ``value`` as one of ``dtype``; None where it is none, or has no such value."""
    with np.errstate(all="ignore"):
        return None if value.number is None else _numeral_of(value.number, (dtype, False))


def _numeral_of(value: Number | None, kind: Kind) -> Value | None:
    """``value`` in the dtype of ``kind``, written with as few digits as are rounded to it."""
    own = None if value is None else _scalar(value, kind[0])
    return None if own is None else numeral(own if isinstance(own, int) else float(str(own)), kind)


def _scalar(value: Number, dtype: str) -> Number | None:
    """``value`` as a scalar of ``dtype``, a Python integer or a NumPy number; None where it has no such value."""
    if not isfinite(value):
        return None
    if dtype in _INTEGERS:
        low, high = _INTEGERS[dtype]
        return int(value) if value == int(value) and low <= value <= high else None
    own: float | None = _FLOATS[dtype](value) if dtype in _FLOATS else None
    return own if own is not None and isfinite(own) else None


def _power(base: Number, exponent: Number) -> Number | None:
    """Small powers but the third, which is rounded in the order in which it is multiplied."""
    square = base * base
    return {1: base, 2: square, 4: square * square}.get(int(exponent)) if exponent == int(exponent) else None


_ARITHMETIC: dict[Op, Callable[..., Number | None]] = {
    ADD: lambda a, b: a + b,
    SUBTRACT: lambda a, b: a - b,
    MULTIPLY: lambda a, b: a * b,
    DIVIDE: lambda a, b: a / b,
    NEGATIVE: lambda a: -a,
    POWER: _power,
}


def typed_number(literal: Value, dtype: str) -> Value:
    """A number of Python as one of ``dtype``."""
    known = converted(literal, dtype)
    return Value(Typed(literal.code, dtype), (), (dtype, False), number=known.number if known else None)


def positions_as(integers: Arange, dtype: str) -> Node:
    """``integers`` in ``dtype``: made in it at once, where no operation on the way to any of them is rounded.

    What int32 does not hold is made in a float that is wide enough for its magnitude.
    """
    greatest = _greatest(integers)
    if dtype not in dtypes.EXACT_UP_TO or greatest <= dtypes.EXACT_UP_TO[dtype]:
        return replace(integers, own_dtype=dtype)
    if 2**31 <= greatest < inf:
        wide = replace(integers, own_dtype=dtypes.promote([(dtype, False), ("float32", False)])[0])
        return wide if wide.own_dtype == dtype else Cast(wide, dtype)
    return Cast(integers, dtype)


def _greatest(positions: Arange) -> float:
    """The greatest magnitude on the way to the positions; infinity where their end is not known yet."""
    end = known(positions.stop)
    return inf if end is None else max(abs(positions.start), abs(end), abs(end - positions.start))

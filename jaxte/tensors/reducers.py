"""The built-in reducers: what they combine, and what changes nothing."""

from __future__ import annotations

from functools import cache

from jaxte.lang import dtypes
from jaxte.lang.expr import (
    Const,
    Expr,
    Reducer,
    Symbol,
    as_expr,
    call,
)
from jaxte.lang.operators import AND, EQUAL, GREATER, LESS, MAXIMUM, MINIMUM, NOT, NOT_EQUAL, OR, SELECT
from jaxte.tensors.shapes import MAX_EXTENT


def _limit(dtype: str, largest: bool) -> Expr:
    """The identity of min (the largest value) and of max (the least)."""
    if dtypes.is_float(dtype):
        return Const(float("inf") if largest else float("-inf"), dtype)
    if dtype == "bool":
        return Const(largest)
    bits, unsigned = int(dtype.lstrip("uint")), dtype.startswith("u")
    if unsigned:
        return Const(2**bits - 1 if largest else 0, dtype)
    return Const(2 ** (bits - 1) - 1 if largest else -(2 ** (bits - 1)), dtype)


@cache
def builtin_reducer(name: str, dtype: str, ties: str = "even") -> Reducer:
    """The reducer "sum", "prod", "max", "min", "any" or "all" on ``dtype``."""
    x, y = Symbol("x", dtype), Symbol("y", dtype)
    result: Expr
    identity: Expr
    match name:
        case "sum":
            result, identity = x + y, number_of(0, dtype)
        case "prod":
            result, identity = x * y, number_of(1, dtype)
        case "max":
            result, identity = call(MAXIMUM, x, y), _limit(dtype, largest=False)
        case "min":
            result, identity = call(MINIMUM, x, y), _limit(dtype, largest=True)
        case "any":
            result, identity = call(OR, x, y), as_expr(False)
        case _:
            result, identity = call(AND, x, y), as_expr(True)
    return Reducer(name, name, ties, (x,), (y,), (result,), (identity,))


def number_of(value: int, dtype: str) -> Const:
    """A number as ``dtype`` writes it."""
    if dtypes.is_complex(dtype):
        return Const(complex(value), dtype)
    return Const(float(value) if dtypes.is_float(dtype) else value, dtype)


@cache
def arg_reducer(name: str, dtype: str) -> Reducer:
    """Position and value; of equal values the first position wins, NaN wins over numbers, as in ``jnp.argmax``."""
    i, x, j, y = Symbol("i", "int32"), Symbol("x", dtype), Symbol("j", "int32"), Symbol("y", dtype)
    better = call(GREATER if name == "argmax" else LESS, y, x)
    level = call(EQUAL, x, y)
    if dtypes.is_inexact(dtype):
        x_nan, y_nan = call(NOT_EQUAL, x, x), call(NOT_EQUAL, y, y)
        better = call(OR, better, call(AND, y_nan, call(NOT, x_nan)))
        level = call(OR, level, call(AND, x_nan, y_nan))
    taken = call(OR, better, call(AND, level, call(LESS, j, i)))
    results = (call(SELECT, taken, j, i), call(SELECT, taken, y, x))
    identity = (Const(MAX_EXTENT, "int32"), _limit(dtype, largest=name == "argmin"))
    return Reducer(name, name, "first", (i, x), (j, y), results, identity)

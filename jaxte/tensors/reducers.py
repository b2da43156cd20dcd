"""The built-in reducers: what they combine, and what changes nothing.

Sums, products and recurrences of 16-bit numbers in float32, rounded once: one rounding for each term, or for each part of a sum, would lose what they have.
"""

from __future__ import annotations

from functools import cache

from jaxte.lang import dtypes
from jaxte.lang import operators as ops
from jaxte.lang.dtypes import NARROW
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, Reducer, Symbol, as_expr, call, cast
from jaxte.lang.walk import postorder, rewrite, substitute
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
            result, identity = call(ops.MAXIMUM, x, y), _limit(dtype, largest=False)
        case "min":
            result, identity = call(ops.MINIMUM, x, y), _limit(dtype, largest=True)
        case "any":
            result, identity = call(ops.OR, x, y), as_expr(False)
        case _:
            result, identity = call(ops.AND, x, y), as_expr(True)
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
    better = call(ops.GREATER if name == "argmax" else ops.LESS, y, x)
    level = call(ops.EQUAL, x, y)
    if dtypes.is_inexact(dtype):
        x_nan, y_nan = call(ops.NOT_EQUAL, x, x), call(ops.NOT_EQUAL, y, y)
        better = call(ops.OR, better, call(ops.AND, y_nan, call(ops.NOT, x_nan)))
        level = call(ops.OR, level, call(ops.AND, x_nan, y_nan))
    taken = call(ops.OR, better, call(ops.AND, level, call(ops.LESS, j, i)))
    results = (call(ops.SELECT, taken, j, i), call(ops.SELECT, taken, y, x))
    identity = (Const(MAX_EXTENT, "int32"), _limit(dtype, largest=name == "argmin"))
    return Reducer(name, name, "first", (i, x), (j, y), results, identity)


_WIDE = "float32"


def is_rounded(node: Reduce) -> bool:
    """Whether each term of a sum of 16-bit numbers is one of float32 that is rounded: what flows back to an array that is widened as it is read."""
    return node.dtype in NARROW and _unrounded(node.exprs[0]) is not node.exprs[0]


def with_wide_reads(node: Reduce) -> Reduce | None:
    """``node``, a sum of 16-bit numbers, with each of them widened as it is read, and no term rounded; None for any other, and for sums of sums."""
    body = node.exprs[0]
    if node.dtype not in NARROW or body.reduces:
        return None
    wide = rewrite(body, _widened)
    if wide.dtype != _WIDE:
        return None
    return Reduce(builtin_reducer(node.reducer.name, _WIDE), (wide,), node.axes, node.where)


def _widened(node: Expr) -> Expr:
    return cast(node, _WIDE) if isinstance(node, Read) and node.dtype in NARROW else _unrounded(node)


def _unrounded(node: Expr) -> Expr:
    match node:
        case Call(op, (operand,)) if op.name == "cast" and node.dtype in NARROW and operand.dtype == _WIDE:
            return operand
    return node


def wide_dtype(node: Reduce) -> str:
    """What ``node`` is computed in: its own dtype, or a wider one."""
    return _WIDE if node.reducer.name in ("sum", "prod") and node.dtype in NARROW else node.dtype


def in_wide(node: Reduce) -> Reduce:
    """``node`` in the dtype of :func:`wide_dtype`."""
    wide = wide_dtype(node)
    if wide == node.dtype:
        return node
    return Reduce(
        builtin_reducer(node.reducer.name, wide), (cast(node.exprs[0], wide),), node.axes, node.where
    )


def wide_recurrence(reducer: Reducer) -> Reducer:
    """``reducer`` on wider numbers where it adds or multiplies: a cumulative reduction rounds at each step what it has so far."""
    computes = any(
        isinstance(n, Call) and n.op in (ops.ADD, ops.SUBTRACT, ops.MULTIPLY) and n.dtype in NARROW
        for n in postorder(*reducer.results)
    )
    if not computes:
        return reducer
    symbols = {
        s: Symbol(s.name, _WIDE if s.dtype in NARROW else s.dtype) for s in (*reducer.lhs, *reducer.rhs)
    }
    lhs, rhs = (tuple(symbols[s] for s in side) for side in (reducer.lhs, reducer.rhs))
    results = tuple(rewrite(substitute(e, symbols), _in_wide) for e in reducer.results)
    identity = tuple(rewrite(e, _in_wide) for e in reducer.identity)
    return Reducer(reducer.name, reducer.label, reducer.ties, lhs, rhs, results, identity)


def _in_wide(node: Expr) -> Expr:
    """A number or a cast of 16 bits as one of more."""
    match node:
        case Const(value) if node.dtype in NARROW and not node.weak:
            return Const(value, _WIDE)
        case Call(op, (operand,)) if op.name == "cast" and node.dtype in NARROW:
            return cast(operand, _WIDE)
    return node

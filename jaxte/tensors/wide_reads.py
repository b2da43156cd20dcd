"""Sums, products and recurrences of 16-bit numbers in float32, rounded once: one rounding for each term, or for each part of a sum, would lose what they have."""

from __future__ import annotations

from jaxte.lang.dtypes import NARROW
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, Reducer, Symbol, cast
from jaxte.lang.operators import ADD, MULTIPLY, SUBTRACT
from jaxte.lang.walk import postorder, rewrite, substitute
from jaxte.tensors.reducers import builtin_reducer

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
        isinstance(n, Call) and n.op in (ADD, SUBTRACT, MULTIPLY) and n.dtype in NARROW
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

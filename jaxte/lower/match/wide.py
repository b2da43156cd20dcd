"""Sums, products and recurrences of 16-bit numbers are computed in float32, and rounded once: one rounding for each term would lose what they have."""

from __future__ import annotations

from jaxte.lang.dtypes import NARROW
from jaxte.lang.expr import Call, Const, Expr, Reduce, Reducer, Symbol, cast
from jaxte.lang.operators import ADD, MULTIPLY, SUBTRACT
from jaxte.lang.walk import postorder, rewrite, substitute
from jaxte.tensors.reducers import builtin_reducer

_WIDE = dict.fromkeys(NARROW, "float32")


def wide_dtype(node: Reduce) -> str:
    """What ``node`` is computed in: its own dtype, or a wider one."""
    return _WIDE.get(node.dtype, node.dtype) if node.reducer.name in ("sum", "prod") else node.dtype


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
    symbols = {s: Symbol(s.name, _WIDE.get(s.dtype, s.dtype)) for s in (*reducer.lhs, *reducer.rhs)}
    lhs, rhs = (tuple(symbols[s] for s in side) for side in (reducer.lhs, reducer.rhs))
    results = tuple(rewrite(substitute(e, symbols), _in_wide) for e in reducer.results)
    identity = tuple(rewrite(e, _in_wide) for e in reducer.identity)
    return Reducer(reducer.name, reducer.label, reducer.ties, lhs, rhs, results, identity)


def _in_wide(node: Expr) -> Expr:
    """A number or a cast of 16 bits as one of more."""
    match node:
        case Const(value) if node.dtype in NARROW and not node.weak:
            return Const(value, _WIDE[node.dtype])
        case Call(op, (operand,)) if op.name == "cast" and node.dtype in NARROW:
            return cast(operand, _WIDE[node.dtype])
    return node

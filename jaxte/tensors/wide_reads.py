"""Sums of 16-bit numbers as sums of float32, which may be taken in parts without being rounded in between."""

from __future__ import annotations

from jaxte.lang.dtypes import NARROW
from jaxte.lang.expr import Call, Expr, Read, Reduce, cast
from jaxte.lang.walk import rewrite
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

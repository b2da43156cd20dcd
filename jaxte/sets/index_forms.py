"""Whether expressions have linear forms: what is asked of those that may be no indices."""

from __future__ import annotations

from functools import lru_cache

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Var
from jaxte.lang.walk import postorder
from jaxte.sets.affine import Linear, linear


@lru_cache(maxsize=4096)
def is_index(expr: Expr) -> bool:
    """Whether ``expr`` is (quasi-)affine in axes and sizes, with no data in it."""
    for node in postorder(expr):
        if isinstance(node, Read) or not isinstance(node, (Axis, Var, Const, Call)):
            return False
    return linear_or_none(expr) is not None


def linear_or_none(expr: Expr) -> Linear | None:
    """The linear form of ``expr``; None where it has none."""
    try:
        return linear(expr)
    except IndexExpressionError:
        return None


def difference(comparison: Call) -> Linear | None:
    """What is on the left of a comparison less what is on the right; None where one of them is no integer arithmetic."""
    left, right = map(linear_or_none, comparison.args)
    return None if left is None or right is None else left - right

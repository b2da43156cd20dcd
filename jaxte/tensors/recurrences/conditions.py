"""Comparisons of positions: which are decided, and which of them say the same."""

from __future__ import annotations

from jaxte.lang.expr import Call, Expr, as_expr
from jaxte.lang.operators import GREATER, GREATER_EQUAL, LESS, LESS_EQUAL
from jaxte.lang.walk import rewrite
from jaxte.sets.affine import Linear
from jaxte.sets.conditions import nonnegative_forms
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import decide

_ORDERS = (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL)


def decided(body: Expr) -> Expr:
    """``body`` without comparisons of positions that hold at all of them, or at none."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Call) and node.op in _ORDERS and all(is_index(a) for a in node.args):
            found = decide(node.op, *node.args)
            return node if found is None else as_expr(found)
        return node

    return rewrite(body, rule)


def same_condition(a: Expr, b: Expr) -> bool:
    """Whether two comparisons of positions hold at the same ones."""
    first, second = nonnegative_forms(a), nonnegative_forms(b)
    return len(first) == len(second) == 1 and is_zero(first[0] - second[0])


def is_zero(form: Linear) -> bool:
    return form.is_constant and form.constant == 0

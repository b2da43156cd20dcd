"""Comparisons of positions: which are decided, and which of them say the same."""

from __future__ import annotations

from jaxte.lang.expr import Call, Expr, as_expr
from jaxte.lang.operators import GREATER, GREATER_EQUAL, LESS, LESS_EQUAL
from jaxte.lang.walk import rewrite
from jaxte.sets.affine import Linear, linear
from jaxte.sets.index_forms import difference, is_index
from jaxte.sets.intervals import decide

_SURPLUS = {GREATER_EQUAL: (1, 0), GREATER: (1, 1), LESS_EQUAL: (-1, 0), LESS: (-1, 1)}


def decided(body: Expr) -> Expr:
    """``body`` without comparisons of positions that hold at all of them, or at none."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Call) and node.op in _SURPLUS and all(is_index(a) for a in node.args):
            found = decide(node.op, *node.args)
            return node if found is None else as_expr(found)
        return node

    return rewrite(body, rule)


def same_condition(a: Expr, b: Expr) -> bool:
    """Whether two comparisons of positions hold at the same ones."""
    first, second = _surplus(a), _surplus(b)
    return first is not None and second is not None and is_zero(first - second)


def _surplus(test: Expr) -> Linear | None:
    """What is at least 0 where the comparison ``test`` of positions holds."""
    if not isinstance(test, Call) or test.op not in _SURPLUS:
        return None
    found = difference(test)
    sign, less = _SURPLUS[test.op]
    return None if found is None else found * sign - linear(as_expr(less))


def is_zero(form: Linear) -> bool:
    return form.is_constant and form.constant == 0

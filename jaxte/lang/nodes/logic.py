"""Conjunctions of conditions: put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.graphs import leaves
from jaxte.lang.nodes.arithmetic import TRUE, Call, Expr, call
from jaxte.lang.operators import AND


def conjunction(conditions: Sequence[Expr]) -> Expr:
    """All of ``conditions``."""
    result: Expr = TRUE
    for condition in conditions:
        result = call(AND, result, condition)
    return result


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions whose conjunction ``condition`` is, in order."""
    parts = leaves(condition, lambda node: node.args if isinstance(node, Call) and node.op is AND else ())
    return [part for part in parts if part is not TRUE]

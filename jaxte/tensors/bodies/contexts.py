"""Where a read stands: the axes in scope, and the conditions under which it is taken."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, call
from jaxte.lang.identity import among
from jaxte.lang.operators import NOT, SELECT
from jaxte.lang.walk import postorder


def contexts(
    axes: Sequence[Axis], body: Expr, targets: set[Read]
) -> list[tuple[Read, tuple[Axis, ...], tuple[Expr, ...]]]:
    """Each of ``targets`` with the axes in scope and the conditions under which it is evaluated."""
    leads: set[Expr] = set()
    for node in postorder(body):
        if node in targets or any(child in leads for child in node.children):
            leads.add(node)
    found: dict[tuple[Read, tuple[Axis, ...], tuple[Expr, ...]], None] = {}
    seen = set()
    stack: list[tuple[Expr, tuple[Axis, ...], tuple[Expr, ...]]] = [(body, tuple(axes), ())]
    while stack:
        node, scope, conditions = stack.pop()
        if node not in leads or (node, scope, conditions) in seen:
            continue
        seen.add((node, scope, conditions))
        if isinstance(node, Read) and node in targets:
            found[node, scope, conditions] = None
        match node:
            case Call(op, (test, taken, other)) if op is SELECT:
                stack.append((test, scope, conditions))
                stack.append((taken, scope, _extended(conditions, test)))
                stack.append((other, scope, _extended(conditions, call(NOT, test))))
            case Reduce(_, exprs, own, where):
                inner = (*scope, *own)
                bounds = tuple(a.condition for a in own if a.condition is not TRUE)
                stack.append((where, inner, (*conditions, *bounds)))
                stack.extend((e, inner, _extended(conditions, where)) for e in exprs)
            case _:
                stack.extend((child, scope, conditions) for child in node.children)
    return list(found)


def _extended(conditions: tuple[Expr, ...], condition: Expr) -> tuple[Expr, ...]:
    return (
        (*conditions, condition) if condition is not TRUE and not among(condition, conditions) else conditions
    )

"""Sums as their terms, and terms as sums: the one way in which forms and rewrites take sums apart and put them together."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Call, Expr, call
from jaxte.lang.operators import ADD, NEGATIVE, SUBTRACT

MOST_PARTS = 64  # terms that a sum is taken apart into, and factors of a product: stencil_25_point has 25

Signed = tuple[Expr, int]  # a term with 1 where it is added, -1 where it is subtracted


def signed_terms(expr: Expr, mixed: bool = False, negated: bool = False) -> list[Signed]:
    """The summands of ``expr`` in order, with their signs.

    Those beyond ``MOST_PARTS`` stay together: shared subexpressions would make them exponentially many.

    Args:
        expr: a sum, or anything else as the only term.
        mixed: whether terms may have other dtypes than the sum.
        negated: whether the terms of a negated sum are taken too.
    """
    found: list[Signed] = []
    stack = [(expr, 1)]
    while stack:
        node, sign = stack.pop()
        match node:
            case _ if len(found) + len(stack) > MOST_PARTS:
                found.append((node, sign))
            case Call(op, (a, b)) if op in (ADD, SUBTRACT) and _is_of(expr.dtype, node, mixed):
                stack += [(b, sign if op is ADD else -sign), (a, sign)]
            case Call(op, (a,)) if negated and op is NEGATIVE:
                stack.append((a, -sign))
            case _:
                found.append((node, sign))
    return found


def addends(expr: Expr) -> list[Expr]:
    """The summands of ``expr`` in order, differences among them as they stand."""
    found: list[Expr] = []
    stack = [expr]
    while stack:
        match stack.pop():
            case Call(op, (a, b)) as node if (
                op is ADD and node.dtype == expr.dtype and len(found) + len(stack) <= MOST_PARTS
            ):
                stack += [b, a]
            case other:
                found.append(other)
    return found


def added(terms: Sequence[Signed]) -> Expr:
    """The sum of ``terms`` from the first to the last."""
    (total, sign), *others = terms
    if sign < 0:
        total = call(NEGATIVE, total)
    for term, own in others:
        total = call(ADD if own > 0 else SUBTRACT, total, term)
    return total


def _is_of(dtype: str, node: Call, mixed: bool) -> bool:
    return node.dtype == dtype and (mixed or all(part.dtype == dtype for part in node.args))

"""Sums as their terms, and terms as sums: the one way in which forms and rewrites take sums apart and put them together; and how much they compute."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jaxte.lang.expr import Call, Const, Expr, Read, call
from jaxte.lang.graphs import ordered, reached
from jaxte.lang.limits import FUNCTION, MOST_PARTS
from jaxte.lang.operators import ADD, DIVIDE, NEGATIVE, SUBTRACT
from jaxte.lang.scalars.table import TABLE

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


_QUOTIENT = 3  # what a quotient takes in multiplications


def operands(node: Expr) -> Sequence[Expr]:
    """What ``node`` is computed of; not the indices of a read."""
    return () if isinstance(node, Read) else node.children


def value_nodes(*roots: Expr) -> list[Expr]:
    """The nodes below ``roots`` that are not part of an index, operands before what they are operands of."""
    return ordered(roots, operands)


def operations(root: Expr, known: Collection[Expr] = ()) -> int:
    """Operations below ``root``, less those of ``known`` nodes; functions count as several."""
    nodes = reached([root], lambda node: [child for child in operands(node) if child not in known])
    return sum(weight(node) for node in nodes if isinstance(node, Call) and not node.weak)


def weight(node: Call) -> int:
    """What ``node`` alone counts for."""
    if node.op is DIVIDE:
        return _QUOTIENT
    if node.op.name == "power":
        return 1 if isinstance(node.args[1], Const) and node.args[1].value == 2 else FUNCTION
    return 1 if node.op.name not in TABLE or TABLE[node.op.name].cheap else FUNCTION

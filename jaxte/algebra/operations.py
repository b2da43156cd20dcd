"""How much an expression computes: what is worth a tensor that is written and read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jaxte.lang.expr import Call, Const, Expr, Read
from jaxte.lang.graphs import ordered, reached
from jaxte.lang.operators import DIVIDE
from jaxte.lang.scalars.table import TABLE

_FUNCTION = 8  # operations that exp and its like count for
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
        return 1 if isinstance(node.args[1], Const) and node.args[1].value == 2 else _FUNCTION
    return 1 if node.op.name not in TABLE or TABLE[node.op.name].cheap else _FUNCTION

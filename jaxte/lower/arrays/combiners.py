"""What a reducer does to two arrays, and what changes nothing, as nodes."""

from __future__ import annotations

from collections.abc import Mapping

from jaxte.lang.expr import Call, Const, Expr, Reducer, Symbol
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.leaves import number
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.lower.arrays.operations import Apply, Cast


def node_of(expr: Expr, symbols: Mapping[Symbol, Node]) -> Node:
    """``expr``, made of ``symbols`` and numbers, as a node."""
    memo: dict[Expr, Node] = {}
    for node in postorder(expr):
        match node:
            case Symbol():
                memo[node] = symbols[node]
            case Const(value):
                memo[node] = number(value, node.dtype)
            case Call(op, (operand,)) if op.name == "cast":
                memo[node] = Cast(memo[operand], node.dtype)
            case Call(op, args):
                memo[node] = Apply(op, tuple(memo[a] for a in args))
            case _:
                raise ArrayError(f"{node!r} is no part of a combiner")
    return memo[expr]


def identity_of(reducer: Reducer, position: int = 0) -> Node:
    """What changes nothing, as a Python number."""
    return node_of(reducer.identity[position], {})

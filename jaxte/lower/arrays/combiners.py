"""What a reducer does to two arrays, and what changes nothing, as nodes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from jaxte.lang.expr import Call, Const, Expr, Reducer, Symbol
from jaxte.lang.operators import ADD, AND, MAXIMUM, MINIMUM, MULTIPLY, OR, Op
from jaxte.lang.walk import postorder
from jaxte.lower.arrays.elementwise import Apply, Cast
from jaxte.lower.arrays.leaves import Number, number
from jaxte.lower.arrays.loops import Folded
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.lower.arrays.steps import Pad
from jaxte.lower.arrays.views import Padded, View


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


OPS: dict[str, Op] = {  # what two values of a reduction are combined by
    "sum": ADD,
    "prod": MULTIPLY,
    "max": MAXIMUM,
    "min": MINIMUM,
    "any": OR,
    "all": AND,
}


def combined(reducer: Reducer, parts: Sequence[Node]) -> Node:
    """``parts`` combined, one after the other, by a reducer of one value."""
    if reducer.name not in OPS:
        return Folded(reducer, tuple(parts))
    return functools.reduce(lambda a, b: Apply(OPS[reducer.name], (a, b)), parts)


def filled(array: Node, widths: Sequence[tuple[Expr, Expr]], fill: Node) -> Node:
    """``array`` with ``fill`` around it."""
    if isinstance(fill, Number) and not fill.value:
        return View(array, Pad(tuple(widths)))
    return Padded(array, tuple(widths), fill)

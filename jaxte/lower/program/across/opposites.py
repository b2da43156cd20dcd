"""Differences of the same two arrays in both orders: one of them is nothing less the other.

    jnp.pad(u[:-1] - u[1:], (1, 0)) + jnp.pad(u[1:] - u[:-1], (0, 1))

What flows along an edge, a weight by a distance, and what flows back through either is read at both ends. XLA finds two differences there, and where more than
one kernel reads them it writes two arrays: a step of anisotropic diffusion with its gradient moves 54 MB on a GPU so, and 38 MB with one for each dimension.
``0.0 - d`` is ``-d`` but for the sign of zero, and has that of the other order, so that a quotient by it is the same. A square is that of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from jaxte.lang.dtypes import is_float
from jaxte.lang.operators import ABS, MULTIPLY, POWER, SUBTRACT
from jaxte.lower.arrays.elementwise import Apply, Number
from jaxte.lower.arrays.node import Node, nodes_below, rewritten
from jaxte.lower.arrays.views import Index, Range, View
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.sets.intervals import known


def with_opposites(statements: Sequence[AnyStatement], text: Callable[[Node], str]) -> list[AnyStatement]:
    """``statements``, those of one function, in which no difference is computed in both orders.

    Args:
        statements: those of one function.
        text: of a node, which orders what is not slices of one array.
    """
    sources = [s.source for s in statements if isinstance(s, Statement)]
    pairs = {n.args: n for n in nodes_below(*sources) if isinstance(n, Apply) and _is_difference(n)}
    turned = {
        n for (a, b), n in pairs.items() if a is not b and (b, a) in pairs and not _is_forward(a, b, text)
    }
    if not turned:
        return list(statements)

    def rule(node: Node) -> Node:
        match node:
            case Apply(op, (a, b)) if op is SUBTRACT and node in turned:
                return Apply(SUBTRACT, (Number(0.0), Apply(SUBTRACT, (b, a))))
            case Apply(op, (a, Number(int(value)))) if op is POWER and value & 1 == 0:
                return Apply(op, (_either(a), Number(value)))
            case Apply(op, (a,)) if op is ABS:
                return Apply(op, (_either(a),))
            case Apply(op, (a, b)) if op is MULTIPLY and a is b:
                return Apply(op, (_either(a), _either(b)))
        return node

    return [
        replace(s, source=rewritten(s.source, rule)) if isinstance(s, Statement) else s for s in statements
    ]


def _is_difference(node: Apply) -> bool:
    return node.op is SUBTRACT and is_float(node.dtype) and all(a.shape for a in node.args)


def _either(node: Node) -> Node:
    """``node``, or what it is the opposite of."""
    match node:
        case Apply(op, (Number(0.0), Apply(inner) as other)) if op is SUBTRACT and inner is SUBTRACT:
            return other
    return node


def _is_forward(a: Node, b: Node, text: Callable[[Node], str]) -> bool:
    """Whether ``a - b`` is the order that stays, in both passes: of two slices of one array the later one less the earlier one."""
    match a, b:
        case View(array, Index() as first), View(other, Index() as second) if array is other:
            if (starts := _starts(first)) != (others := _starts(second)):
                return starts > others
    return text(a) < text(b)


def _starts(index: Index) -> list[int]:
    return [
        (known(e.start) or 0) if isinstance(e, Range) and e.start is not None else 0 for e in index.entries
    ]

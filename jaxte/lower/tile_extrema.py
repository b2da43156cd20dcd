"""Comparisons of an element with the minimum that it may be, as comparisons with the other elements.

    d_0[i, j] > m[i, j]    where m[i, j] = minimum(minimum(d_0[i, j], d_1[i, j]), d_2[i, j])
    d_0[i, j] > d_1[i, j] or d_0[i, j] > d_2[i, j]

In tiles XLA on the CPU computes elements again in each loop that has a use for them, and joins a product and a sum into one instruction
in some of these loops and not in others. An element would then miss a minimum that another loop has computed by its last bit, and with it
all of its derivative. Compared among each other, one of the elements is always the least.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from jaxte.expr import Call, Expr, Read, call
from jaxte.operators import AND, EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, MAXIMUM, MINIMUM, OR, Op
from jaxte.tensor import Compute, Tensor
from jaxte.walk import rewrite, substitute

Extrema = dict[Tensor, tuple[Op, list[Read]]]  # a minimum or maximum, and the elements that it is of


def elements_of(body: Expr) -> tuple[Op, list[Read]] | None:
    """The operation and the reads of ``minimum(minimum(a, b), c)``; None for another body."""
    if not isinstance(body, Call) or body.op not in (MINIMUM, MAXIMUM):
        return None
    found: list[Read] = []
    stack: list[Expr] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Read):
            found.append(node)
        elif isinstance(node, Call) and node.op is body.op:
            stack += reversed(node.args)
        else:
            return None
    return body.op, found


def among_elements(body: Expr, extrema: Mapping[Tensor, tuple[Op, list[Read]]]) -> Expr:
    """``body`` with comparisons of elements with their extremum, one of ``extrema``, as comparisons among the elements."""
    if not extrema:
        return body
    return rewrite(body, lambda node: _compared(node, extrema))


def _compared(node: Expr, extrema: Mapping[Tensor, tuple[Op, list[Read]]]) -> Expr:
    match node:
        case Call(relation, (Read() as element, Read() as extremum)) if extremum.tensor in extrema:
            pass
        case _:
            return node
    op, reads = extrema[extremum.tensor]
    assert isinstance(extremum.tensor, Compute)
    at = dict(zip(extremum.tensor.axes, extremum.indices, strict=True))
    elements = [substitute(read, at) for read in reads]
    if element not in {*elements}:
        return node
    others = [other for other in elements if other is not element]
    if relation is EQUAL:
        within = LESS_EQUAL if op is MINIMUM else GREATER_EQUAL
        return reduce(lambda a, b: call(AND, a, b), [call(within, element, other) for other in others])
    if relation is (GREATER if op is MINIMUM else LESS):
        beaten = reduce(lambda a, b: call(OR, a, b), [call(relation, element, other) for other in others])
        return call(AND, beaten, call(EQUAL, extremum, extremum))  # nothing is behind NaN
    return node

"""Sums of quotients without their divisors, where these are the same for all that is added up.

    sum over k of h[i, k] * y[i, k]    with    y[i, k] = e[i, k] / s[i]    is    (sum over k of h[i, k] * e[i, k]) / s[i]

A softmax, weights of attention, a histogram that is divided by its total: what is divided is an array that waits for the sum below it, and a sum of it
waits for that array. Sums of what is divided wait for nothing: a compiler that makes one kernel of sums along rows and of what reads them (``rows`` in
:class:`jaxte.planning.asked.Intermediates`) makes one of both. Products of matrices keep the quotient, which they read as an array anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Read, Reduce, as_expr
from jaxte.lang.operators import DIVIDE
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.contraction import EXACT
from jaxte.sets.intervals import at_most
from jaxte.tensors.tensor import Compute

Quotient = tuple[Expr, Expr]


def without_divisors(node: Reduce) -> tuple[Reduce, tuple[Expr, ...]]:
    """A sum and what it is divided by: ``node`` and nothing where no factor is a quotient of which the sum may be taken without the divisor."""
    if not intermediates().rows or node.reducer.name != "sum" or node.dtype not in EXACT:
        return node, ()
    # a sum of nothing is zero, whatever it is divided by
    if node.where is not TRUE or not all(at_most(as_expr(1), a.extent) for a in node.axes):
        return node, ()
    points = tuple(free_axes(node.exprs[0]))
    factors = product_of(node.exprs[0], whole=True).factors
    found = {f: own for f in factors if (own := _quotient(f, node.axes, points)) is not None}
    body = multiplied([Factor(found[f][0]) if f in found else f for f in factors])
    divided = {r.tensor for f in found for r in reads_of(f.expr)}
    if not found or body.dtype != node.dtype or body.weak:
        return node, ()
    if divided & {r.tensor for r in reads_of(body)}:
        return node, ()  # a quotient that is read all the same is there
    divisors = tuple(found[f][1] for f in factors if f in found)
    return Reduce(node.reducer, (body,), node.axes, TRUE), divisors


def _quotient(factor: Factor, axes: Sequence[Axis], points: Sequence[Axis]) -> Quotient | None:
    """What is divided, and by what that is computed, in a factor of which each element is met once; None where it is no such quotient."""
    read = factor.expr
    if factor.inverse or not isinstance(read, Read) or type(read.tensor) is not Compute:
        return None
    tensor = read.tensor
    if tensor.override is not None or {*read.indices} != {*points} or len(read.indices) != len(points):
        return None
    match tensor.body:
        case Call(op, (above, below)) if op is DIVIDE and any(
            isinstance(r.tensor, Compute) for r in reads_of(below)
        ):
            at: dict[Expr, Expr] = dict(zip(tensor.axes, read.indices, strict=True))
            above, below = substitute(above, at), substitute(below, at)
            same = above.dtype == below.dtype == tensor.dtype and not depends_on(below, axes)
            return (above, below) if same else None
    return None

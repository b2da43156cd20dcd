"""Reductions over a few positions of what is larger than all that it is made from: ``min over e of f(A[i, e], B[j, e])``.

Each position is an elementwise expression of the output, so that all of them are one loop that keeps nothing. XLA would write
the operand of the reduction to memory, several times as large as the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence

from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, Reduce, call
from jaxte.lang.identity import among
from jaxte.lang.operators import ADD, AND, EQUAL, MAXIMUM, MINIMUM, MULTIPLY, OR, SELECT, Op
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.lower.limits import FEW
from jaxte.lower.views.intervals import known

OPS: dict[str, Op] = {  # what two values of a reduction are combined by
    "sum": ADD,
    "prod": MULTIPLY,
    "max": MAXIMUM,
    "min": MINIMUM,
    "any": OR,
    "all": AND,
}


def few_positions(
    expr: Expr, reduced: Iterable[Axis], dims_of: Callable[[Expr], Iterable[Axis]]
) -> Axis | None:
    """The dimension among ``reduced`` over which a reduction of ``expr`` is written out, one position after the other.

    Args:
        expr: what is reduced.
        reduced: the dimensions that the reduction runs over.
        dims_of: the dimensions that an expression depends on.
    """
    every = set(dims_of(expr))
    short = [d for d in reduced if d in every and 1 < (known(d.hi) or 0) <= FEW]
    if not short or isinstance(expr, (Read, Const)):
        return None
    return None if any(set(dims_of(read)) == every for read in reads_of(expr)) else short[0]


def is_written_out(node: Reduce) -> bool:
    """Whether nothing is left of ``node`` to reduce when it is written out."""
    if node.reducer.name not in OPS or node.reducer.name == "sum" or len(node.axes) > 1:
        return False
    return few_positions(node.exprs[0], node.axes, free_axes) is not None


def written_out(node: Reduce, axes: Collection[Axis]) -> Expr:
    """``node`` with one term for each position of those of its axes that are among ``axes``, which start at 0."""
    short = [a for a in node.axes if among(a, axes)]
    rest = [a for a in node.axes if not among(a, axes)]
    total: Expr | None = None
    for positions in itertools.product(*(range(known(a.hi) or 0) for a in short)):
        at = dict(zip(short, map(Const, positions), strict=True))
        expr, where = substitute(node.exprs[0], at), substitute(node.where, at)
        if rest:
            term: Expr = Reduce(node.reducer, (expr,), rest, where)
        else:
            term = expr if where is TRUE else call(SELECT, where, expr, node.reducer.identity[0])
        total = term if total is None else call(OPS[node.reducer.name], total, term)
    assert total is not None
    return total


def chosen(axis: Axis, values: Sequence[Expr]) -> Expr:
    """The one of ``values`` whose number is the position of ``axis``."""
    *before, last = values
    for position in reversed(range(len(before))):
        last = call(SELECT, call(EQUAL, axis, Const(position)), before[position], last)
    return last

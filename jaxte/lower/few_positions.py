"""Reductions over a few positions of what is larger than all that it is made from: ``min over e of f(A[i, e], B[j, e])``.

Each position is an elementwise expression of the output, so that all of them are one loop that keeps nothing. XLA would write
the operand of the reduction to memory, several times as large as the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jaxte.expr import Axis, Const, Expr, Read, Reduce
from jaxte.lower.bounds import known
from jaxte.walk import free_axes, reads_of

MOST = 4
FUNCTIONS = ("min", "max", "prod", "any", "all")


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
    short = [d for d in reduced if d in every and 1 < (known(d.hi) or 0) <= MOST]
    if not short or isinstance(expr, (Read, Const)):
        return None
    return None if any(set(dims_of(read)) == every for read in reads_of(expr)) else short[0]


def is_written_out(node: Reduce) -> bool:
    """Whether nothing is left of ``node`` to reduce when it is written out."""
    if node.reducer.name not in FUNCTIONS or len(node.axes) > 1:
        return False
    return few_positions(node.exprs[0], node.axes, free_axes) is not None

"""Reductions over a few positions of what is larger than all that it is made from: ``min over e of f(A[i, e], B[j, e])``.

Each position is an elementwise expression of the output, so that all of them are one loop that keeps nothing. XLA would write
the operand of the reduction to memory, several times as large as the result.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from jaxte.lang.expr import TRUE, ZERO, Axis, Const, Expr, Read, Reduce, call
from jaxte.lang.identity import among
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.walk import reads_of, substitute
from jaxte.lower.arrays.combiners import OPS
from jaxte.lower.limits import FEW
from jaxte.sets.intervals import known


def is_short(axis: Axis, most: int = FEW) -> bool:
    """Whether an axis from 0 has several positions, at ``most`` so many: those that are written out wherever that saves a loop or a copy."""
    return axis.lo is ZERO and 1 < (known(axis.hi) or 0) <= most


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
    short = [d for d in reduced if d in every and is_short(d)]
    if not short or isinstance(expr, (Read, Const)):
        return None
    return None if any(set(dims_of(read)) == every for read in reads_of(expr)) else short[0]


def term_at(node: Reduce, table: Mapping[Expr, Expr]) -> Expr:
    """What ``node`` reduces where its axes are those of ``table``: over the other axes, if there are any."""
    rest = [a for a in node.axes if a not in table]
    expr, where = substitute(node.exprs[0], table), substitute(node.where, table)
    if rest:
        return Reduce(node.reducer, (expr,), rest, where)
    return expr if where is TRUE else call(SELECT, where, expr, node.reducer.identity[0])


def terms_of(node: Reduce, axes: Collection[Axis]) -> list[Expr]:
    """``node`` at each position of those of its axes that are among ``axes``, whose ranges are known."""
    short = [a for a in node.axes if among(a, axes)]
    points = itertools.product(*(range(known(a.lo) or 0, known(a.hi) or 0) for a in short))
    return [term_at(node, dict(zip(short, map(Const, point), strict=True))) for point in points]


def together(node: Reduce, terms: Iterable[Expr]) -> Expr:
    """``terms`` as ``node`` reduces them, one after the other."""
    op = OPS[node.reducer.name]
    return functools.reduce(lambda a, b: call(op, a, b), terms)


def written_out(node: Reduce, axes: Collection[Axis]) -> Expr:
    """``node`` with one term for each position of those of its axes that are among ``axes``."""
    return together(node, terms_of(node, axes))


def chosen(axis: Axis, values: Sequence[Expr]) -> Expr:
    """The one of ``values`` whose number is the position of ``axis``."""
    *before, last = values
    for position in reversed(range(len(before))):
        last = call(SELECT, call(EQUAL, axis, Const(position)), before[position], last)
    return last

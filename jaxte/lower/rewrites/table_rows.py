"""Products with one of a few matrices, which data choose: a product with each of them, and a choice among the results.

    sum over d of x[i, d] * w[e[i], d, m]
    is  select(e[i] == 0, sum over d of x[i, d] * w[0, d, m], select(e[i] == 1, sum over d of x[i, d] * w[1, d, m], ...))

    sum over i where e[i] == k of x[i, d] * y[i, m]    is    such a choice by k, of products of the rows with e[i] == 0, with e[i] == 1, ...

Read as it stands, the matrix of each row is gathered for itself, and no two rows share a product; its gradient
is a matrix for each row before it is added up. What is not chosen passes nothing on, whatever
numbers are in it, and a position out of range is NaN as the gather is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxte.algebra.product import product_of
from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, as_expr, call
from jaxte.lang.identity import among
from jaxte.lang.operators import EQUAL, LESS, SELECT
from jaxte.lang.walk import depends_on, free_axes, reads_of, rewrite, substitute
from jaxte.lower.cost.platforms import Rates
from jaxte.lower.cost.work import Work, points
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known

_MOST_ROWS = 8  # each is a product of its own


def with_rows_apart(root: Expr, axes: Sequence[Axis], rates: Rates) -> Expr:
    """``root``, over ``axes``, with the sums over matrices that data choose as choices among sums, where these take less time on the platform of ``rates``."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce) or node.reducer.name != "sum":
            return node
        if node.where is not TRUE:
            row = _chosen_row(node, axes)
            return node if row is None or not _gains_added(node, row, rates) else _added_apart(node, row)
        found = _chosen_matrix(node)
        return node if found is None or not _gains(node, found, rates) else _apart(node, *found)

    return rewrite(root, rule)


def _chosen_matrix(node: Reduce) -> tuple[Read, Expr, int] | None:
    """The factor of ``node`` that is a matrix chosen by data, its position, and how many there are; None where the sum is no product with one."""
    product = product_of(node.exprs[0])
    if product.is_conditional or not is_float(node.dtype):
        return None
    chosen = [f for f in product.factors if any(reads_of(i) for r in reads_of(f.expr) for i in r.indices)]
    if len(chosen) != 1 or chosen[0].inverse or not isinstance(chosen[0].expr, Read):
        return None
    read = chosen[0].expr
    data = [(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True) if reads_of(i)]
    rest = [i for i in read.indices if not reads_of(i)]
    if len(data) != 1 or len(rest) < 2 or not all(map(is_index, rest)) or depends_on(data[0][0], node.axes):
        return None
    rows = known(as_expr(data[0][1]))
    return None if rows is None or not 1 < rows <= _MOST_ROWS else (read, data[0][0], rows)


def _gains(node: Reduce, found: tuple[Read, Expr, int], rates: Rates) -> bool:
    """Whether a product with each of the matrices takes less time than gathering one for each row."""
    read, _, rows = found
    own, all_axes = list(free_axes(read)), dict.fromkeys((*free_axes(node), *node.axes))
    others = [f for f in product_of(node.exprs[0]).factors if f.expr is not read and free_axes(f.expr)]
    joined = any(depends_on(f.expr, [a]) for f in others for a in node.axes if depends_on(read, [a]))
    if not joined or set(own) != set(all_axes):
        return False
    made = points(free_axes(node))
    gathered = Work(gather=points(own), kernel=1)
    apart = Work(dot=2.0 * points(all_axes) * rows, stream=4.0 * made * rows, kernel=2.0 * rows)
    return apart.seconds(rates) * 2 <= gathered.seconds(rates)


def _chosen_row(node: Reduce, axes: Sequence[Axis]) -> Axis | None:
    """The axis of few values that data choose for each point of a product of two arrays; None where the sum is none."""
    match node.where:
        case Call(op, args) if op is EQUAL and len(free_axes(node.where)) > 1:
            own = [a for a in args if isinstance(a, Axis) and among(a, axes)]
            data = [a for a in args if reads_of(a)]
            rows = known(own[0].extent) if len(own) == 1 and len(data) == 1 else None
            if rows is None or not 1 < rows <= _MOST_ROWS or own[0].lo is not ZERO:
                return None
            chosen = depends_on(data[0], axes) or not depends_on(data[0], node.axes)
            return None if chosen or depends_on(node.exprs[0], own) else own[0]
    return None


def _gains_added(node: Reduce, row: Axis, rates: Rates) -> bool:
    """Whether a product of matrices for each value of ``row`` takes less time than adding up a matrix for each point."""
    product = product_of(node.exprs[0])
    arrays = [f for f in product.factors if free_axes(f.expr)]
    if product.is_conditional or not is_float(node.dtype) or len(arrays) != 2:
        return False
    outer = [[a for a in free_axes(f.expr) if not among(a, node.axes)] for f in arrays]
    if not all(outer) or any(among(a, outer[1]) for a in outer[0]):
        return False
    rows, whole = points([row]), points(dict.fromkeys(free_axes(node.exprs[0])))
    added = Work(stream=8.0 * whole, dot=2.0 * whole * rows, temporaries=4.0 * whole)
    masked = sum(points(free_axes(f.expr)) for f in arrays)
    apart = Work(dot=2.0 * whole * rows, stream=8.0 * masked * rows, kernel=2.0 * rows)
    return apart.seconds(rates) < added.seconds(rates)


def _added_apart(node: Reduce, row: Axis) -> Expr:
    *others, result = (
        node.rebuild([*node.exprs, substitute(node.where, {row: Const(k)})]) for k in range(points([row]))
    )
    for k, total in reversed(list(enumerate(others))):
        result = call(SELECT, call(LESS, row, k + 1), total, result)
    return result


def _apart(node: Reduce, read: Read, data: Expr, rows: int) -> Expr:
    result: Expr = Const(math.nan, node.dtype)
    for row in reversed(range(rows)):
        own = Read(read.tensor, [Const(row) if i is data else i for i in read.indices])
        total = node.rebuild([substitute(node.exprs[0], {read: own}), TRUE])
        result = call(SELECT, call(EQUAL, data, row), total, result)
    return result

"""Products with the slices of one tensor, added, as one product: ``x @ w[0] + s @ w[1] + t @ w[2]``.

What is multiplied by the slices is put side by side; the matrix product is then over the slices too:

    sum over k of (x[i, k] * w[0, k, o] + s[i, k] * w[1, k, o])   =   sum over p, k of [x, s][i, p, k] * w[p, k, o]

The result is written once, and a product over few terms becomes one over several times as many. What is put side by side is a
copy, so all of it must not be larger than the result.

Products with one of a few matrices, which data choose: a product with each of them, and a choice among the results.

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
from dataclasses import dataclass

from jaxte.algebra.idle_conditions import of_factors, without_idle_conditions
from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.algebra.sums import addends
from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, as_expr, call, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW_POSITIONS
from jaxte.lang.operators import EQUAL, LESS, SELECT
from jaxte.lang.walk import depends_on, free_axes, reads_of, rewrite, substitute
from jaxte.lower.cost.platform import Rates
from jaxte.lower.cost.work import Work, points
from jaxte.lower.rewrites.short_axes import chosen
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known
from jaxte.tensors.reducers import builtin_reducer
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True)
class _Term:
    """``other`` times ``read``, which reads its tensor at the number ``position`` of dimension ``dim``."""

    read: Read
    dim: int
    position: int
    other: Expr


def with_stacked_terms(root: Expr) -> Expr:
    """``root`` with sums of products with slices of one tensor as single products."""
    return rewrite(root, _one_product)


def _one_product(node: Expr) -> Expr:
    if not isinstance(node, Reduce) or not node.is_sum or node.where is not TRUE:
        return node
    # without what Python's sum begins with
    parts = [p for p in addends(node.exprs[0]) if not (isinstance(p, Const) and p.value == 0)]
    if not 1 < len(parts) <= FEW_POSITIONS:
        return node
    for tensor, dim in _candidates(parts[0]):
        terms = [_term(part, tensor, dim) for part in parts]
        found = [t for t in terms if t is not None]
        if len(found) == len(terms) and same_extent(len(terms), tensor.shape[dim]) and _fit(found, node):
            return _joined(sorted(found, key=lambda t: t.position), node)
    return node


def _candidates(part: Expr) -> list[tuple[Tensor, int]]:
    """What the first product reads at a number."""
    reads = [f.expr for f in product_of(part).factors if isinstance(f.expr, Read) and not f.inverse]
    return [(r.tensor, n) for r in reads for n, index in enumerate(r.indices) if isinstance(index, Const)]


def _term(part: Expr, tensor: Tensor, dim: int) -> _Term | None:
    product = product_of(part)
    own = [
        f for f in product.factors if isinstance(f.expr, Read) and f.expr.tensor is tensor and not f.inverse
    ]
    if len(own) != 1 or product.is_conditional:
        return None
    read = own[0].expr
    assert isinstance(read, Read)
    others = [f for f in product.factors if f is not own[0]]
    index = read.indices[dim]
    if not isinstance(index, Const) or all(f.inverse for f in others):
        return None
    return _Term(read, dim, int(index), multiplied([Factor(f.expr, f.inverse) for f in others]))


def _fit(terms: Sequence[_Term], node: Reduce) -> bool:
    """Whether the slices are all those of the tensor, of the same kind, and all copies together not larger than the result."""
    first = terms[0]
    rest = [i for n, i in enumerate(first.read.indices) if n != first.dim]
    over = free_axes(first.other).keys()
    weights = free_axes(first.read).keys()
    for term in terms:
        same = [i for n, i in enumerate(term.read.indices) if n != first.dim]
        if any(a is not b for a, b in zip(rest, same, strict=True)) or free_axes(term.other).keys() != over:
            return False
        if term.other.weak or term.other.dtype != node.dtype or term.read.dtype != node.dtype:
            return False
    kept = {a for a in (*over, *weights) if not among(a, node.axes)}
    return (
        {t.position for t in terms} == set(range(len(terms)))
        and bool(weights - over)
        and bool(over - weights)
        and all(a in over and a in weights for a in node.axes)
        and len(terms) * points(over) <= points(kept)
    )


def _joined(terms: Sequence[_Term], node: Reduce) -> Expr:
    first = terms[0]
    axis = Axis("part", 0, len(terms), reduction=True)
    others = chosen(axis, [t.other for t in terms])
    indices = [axis if n == first.dim else index for n, index in enumerate(first.read.indices)]
    product = others * Read(first.read.tensor, indices)
    return node.changed(exprs=(product,), axes=(axis, *node.axes), where=TRUE)


def with_rows_apart(root: Expr, axes: Sequence[Axis], rates: Rates) -> Expr:
    """``root``, over ``axes``, with the sums over matrices that data choose as choices among sums, where these take less time on the platform of ``rates``."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce) or not node.is_sum:
            return node
        product = product_of(node.exprs[0])
        conditions = conjuncts(node.where)
        if len(of_factors(conditions, product)) < len(conditions):
            row = _chosen_row(node, axes)
            return node if row is None or not _gains_added(node, row, rates) else _added_apart(node, row)
        found = _chosen_matrix(node)
        return node if found is None or not _gains(node, found, rates) else _apart(node, *found)

    return rewrite(root, rule) if root.reduces else root


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
    # Each row is a product of its own.
    return None if rows is None or not 1 < rows <= FEW_POSITIONS else (read, data[0][0], rows)


def _gains(node: Reduce, found: tuple[Read, Expr, int], rates: Rates) -> bool:
    """Whether a product with each of the matrices takes less time than gathering one for each row. Conditions that factors say are left out of it."""
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
            if rows is None or not 1 < rows <= FEW_POSITIONS or own[0].lo is not ZERO:
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
    absent = Const(math.nan, node.dtype)
    passed_on = Reduce(builtin_reducer("any", "bool"), (node.where,), node.axes, TRUE)
    # a row that is not there makes NaN of what is passed on to it
    result = absent if node.where is TRUE else call(SELECT, passed_on, absent, ZERO)
    for row in reversed(range(rows)):
        own = Read(read.tensor, [Const(row) if i is data else i for i in read.indices])
        total = without_idle_conditions(substitute(node, {read: own}))
        result = call(SELECT, call(EQUAL, data, row), total, result)
    return result

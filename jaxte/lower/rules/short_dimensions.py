"""Short dimensions of sums of products that are written out: far shorter ones beside others, of few positions of a result, and by which what is multiplied is shifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Const, Expr, Read
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW, FEW_ELEMENTS, LONG_SUM, LONGEST_UNROLLED, MOST_TERMS
from jaxte.lang.operators import ABS, ADD, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.scalars.rows import OPS
from jaxte.lang.walk import postorder, reads_data, reads_of
from jaxte.lower.body.evaluator import Body
from jaxte.lower.cost.shifted_axes import is_far_shorter, is_product_beside
from jaxte.lower.rewrites.short_axes import asks_rounded, is_short
from jaxte.lower.rules.einsum_operands import Job
from jaxte.lower.views.scope import Scope, beside, overlaps
from jaxte.sets.intervals import known

_CHEAP = (ADD, SUBTRACT, NEGATIVE, MULTIPLY, ABS, MAXIMUM, MINIMUM, OPS["relu"])


def is_beside_short(exprs: Sequence[Expr], dim: Axis, job: Job, scope: Scope) -> bool:
    """Whether a reduced dimension overlaps with far shorter ones of the result, ``p`` in ``sum over i of d[i, b] * x[i + p, c]``.

    Products of matrices for these are fewer than terms. What no matrix product is left of, shifted in several dimensions, is summed along rows.
    """
    found = [(d, known(d.hi), known(dim.hi)) for d in beside(exprs, dim, scope)]
    if not found or any(
        among(d, job.reduced) or not own or not whole or not is_far_shorter(own, whole)
        for d, own, whole in found
    ):
        return False
    dims = [frozenset(scope.dims_under(f.expr)) for f in job.factors]
    kept = [d for d in scope.order if not among(d, job.reduced)]
    return is_product_beside(dims, frozenset(overlaps(exprs, kept, scope, job.budget)))


def is_beside_larger(exprs: Sequence[Expr], dim: Axis, job: Job, scope: Scope) -> bool:
    """Whether a reduced dimension shifts an array beside weights that differ from place to place, ``k`` in ``sum over k, c of x[b, t + k, c] * w[t, k, c, o]``.

    Each place has a product of matrices of its own, over ``c`` for each ``k``, or over both of windows that are laid out. Where these take no more than
    the weights, which are read anyway, 28 products in place of 140 take 0.4 of the time.
    """
    reads = [e for e in exprs if isinstance(e, Read)]
    plain = [e for e in reads if _is_plain(e, scope)]
    if len(reads) != 2 or len(exprs) != 2 or len(plain) != 1 or job.guards:
        return False
    weights, (windows,) = (
        scope.dims_under(plain[0]),
        [scope.dims_under(e) for e in reads if e is not plain[0]],
    )
    if not among(dim, weights):
        return False
    places = beside(exprs, dim, scope)
    both = [d for d in windows if among(d, weights)]
    met = bool(places) and all(among(d, both) and not among(d, job.reduced) for d in places)
    contracted = any(among(d, job.reduced) and d is not dim for d in both)
    matrices = contracted and all(len(own) > len(both) for own in (windows, weights))
    return met and matrices and _points(windows) <= _points(weights)


def _is_plain(read: Read, scope: Scope) -> bool:
    return all(isinstance(index, Axis) for index in scope.indices(read))


def short_dimension(job: Job, scope: Scope, fuses: bool) -> Axis | None:
    """A reduced dimension of a few positions in a product that is as large as one of its factors.

    Such a product is no matrix product: added up position by position it is one fused loop, if no long dimension is reduced. So are sums of elements around positions that
    are data: XLA fuses gathers at one position each, not one at an array of positions. Where sums are calls of a library (not ``fuses``), one over a few positions
    side by side takes as long for each as one over thirty, and products of two arrays of one shape, in pairs, 8 times as long as two slices of each.
    """
    dims = [frozenset(scope.dims_under(f.expr)) for f in job.factors]
    every = frozenset().union(*dims)
    if every not in dims or any(asks_rounded(f.expr) for f in job.factors):
        return None
    for dim in job.reduced:
        alike = not fuses and len(dims) > 1 and _is_side_by_side(job, dim, scope)
        shared = all(map(is_short, job.reduced)) and any(
            dim in own and (own != every or alike) for own in dims
        )
        fused = shared or (len(job.factors) > 1 and _is_around_data(job, dim, scope))
        if fused and is_short(dim, min(FEW, job.budget)):
            return dim
    return None


def _is_side_by_side(job: Job, dim: Axis, scope: Scope) -> bool:
    """Whether the positions of ``dim`` are elements side by side in all that is multiplied, at positions that are no data, and so many that a library sums them.

    Sums of 16-bit numbers are rounded once; terms would be one after the other.
    """
    every = dict.fromkeys(d for f in job.factors for d in scope.dims_under(f.expr))
    if _points(list(every)) <= FEW_ELEMENTS or _points(job.reduced) > FEW or dtypes.width(job.dtype) < 4:
        return False  # a long sum over many such dimensions is one sum
    reads = [r for f in job.factors for r in reads_of(f.expr)]
    last = (r.indices and among(dim, scope.dims_under(r.indices[-1])) for r in reads)
    return all(last) and not any(reads_data(f.expr) for f in job.factors)


def short_result(job: Job, scope: Scope) -> Axis | None:
    """A dimension of the result of a few positions, ``c`` in ``sum over j of D[i, j] * (x[i, c] - y[j, c])``.

    What is computed over all dimensions would be written to memory for a product that is no product of matrices; for one position of
    ``c`` after the other it is one fused loop that keeps nothing. In tiles all of it stays in the cache, and one loop is enough.
    """
    dims = [frozenset(scope.dims_under(f.expr)) for f in job.factors]
    every = frozenset().union(*dims)
    whole = [f.expr for f, own in zip(job.factors, dims, strict=True) if own == every]
    if len(dims) < 2 or len(whole) != 1 or isinstance(whole[0], Read) or _points(job.reduced) < LONG_SUM:
        return None
    if any(isinstance(n, Call) and not n.weak and n.op not in _CHEAP for n in postorder(whole[0])):
        return None  # the loop is as dear as what it keeps: differences to the nearest image, 0.8
    most = min(MOST_TERMS, job.budget)
    alone = [d for d in scope.order if d in every and sum(d in own for own in dims) == 1]
    few = [d for d in alone if not among(d, job.reduced) and is_short(d, most)]
    long = all(_points([d]) >= LONG_SUM for d in every if not among(d, few))
    if long and _points(few) <= job.budget:
        return few[0] if few else None
    return next((d for d in few if is_short(d, FEW)), None)


def shifting_result(job: Job, scope: Scope) -> Axis | None:
    """A dimension of the result of a few positions by which what is multiplied is shifted, ``p`` in ``sum over i of d[i] * x[i + p]``.

    Where another factor has all other dimensions this is no product of matrices, and its shifts side by side would be an array of their own: for
    one position of ``p`` after the other, nothing but the sum is written.
    """
    dims = [frozenset(scope.dims_under(f.expr)) for f in job.factors]
    every = frozenset().union(*dims)
    kept = [d for d in scope.order if not among(d, job.reduced) and is_short(d, min(MOST_TERMS, job.budget))]
    for dim in overlaps([f.expr for f in job.factors], kept, scope, job.budget):
        if sum(dim in own for own in dims) == 1 and every - {dim} in dims:
            return dim
    return None


def rows_of_shifts(body: Body, job: Job, scope: Scope) -> list[Axis]:
    """What sums of shifts are summed over at last, once each is summed along its rows.

    Sums of a whole array are taken in two kernels each, unless what is written at first is an array for all of them.
    """
    if not body.policy.facts.fuses_products or body.in_tiles or job.guards:
        return []
    every = [d for d in scope.order if not is_short(d, LONGEST_UNROLLED)]
    long = [d for d in every if among(d, job.reduced)]
    if len(long) < len(every):  # a sum for each of many positions is none of rows
        return []
    inner = replace(job, reduced=tuple(d for d in job.reduced if among(d, long)))
    if len(long) < 2 or _points(long[:-1]) < LONG_SUM or shifting_result(inner, scope) is None:
        return []
    return long[:-1]


def _points(dims: Sequence[Axis]) -> int:
    return prod(known(d.hi) or 0 for d in dims)


def _is_around_data(job: Job, dim: Axis, scope: Scope) -> bool:
    """Whether a factor is read at positions that are data and ``dim`` together, one element at each."""
    reads = (read for f in job.factors for read in reads_of(f.expr))
    return any(
        reads_of(index) and among(dim, scope.dims_under(index)) and all(map(_is_position, read.indices))
        for read in reads
        for index in read.indices
    )


def _is_position(index: Expr) -> bool:
    return bool(reads_of(index)) or isinstance(index, (Axis, Const))

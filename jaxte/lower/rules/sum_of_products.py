"""Sums of products: one einsum over operands that are each evaluated on their own dimensions.

The steps, each of which hands a smaller sum to the next: sums of products become sums; conditions on one dimension
shorten it; conditions without reduced dimensions leave the sum; a dimension that is divided by a stride is taken
apart into digits; overlapping indices (``i + k``) are unrolled over their short dimension; what is left is an einsum, with
triangular and other remaining conditions as a mask on one operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from jaxte.algebra.product import Factor, is_zero, may_spoil, product_of
from jaxte.algebra.sums import signed_terms
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr, conjunction, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import FEW, FEW_ELEMENTS, LONG_SUM, LONGEST_UNROLLED, MOST_TERMS
from jaxte.lang.operators import ABS, ADD, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.scalars.rows import OPS
from jaxte.lang.walk import postorder, reads_data, reads_of, substitute
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.shifted_axes import is_far_shorter, is_product_beside
from jaxte.lower.rewrites.short_axes import asks_rounded, is_short
from jaxte.lower.rules.by_columns import by_columns, combined, reduced_call
from jaxte.lower.rules.einsum import contraction
from jaxte.lower.rules.einsum_operands import Job, guard_dims
from jaxte.lower.rules.excluded_points import has_many_positions, may_be_masked
from jaxte.lower.rules.select import guarded, keeps_in_range, mask_value
from jaxte.lower.views.condition_box import cut, split_conditions
from jaxte.lower.views.mixed_radix import digits_of, product_digits
from jaxte.lower.views.scope import Scope, beside, overlapping, overlaps
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute

_CHEAP = (ADD, SUBTRACT, NEGATIVE, MULTIPLY, ABS, MAXIMUM, MINIMUM, OPS["relu"])


def sum_value(
    body: Body,
    expr: Expr,
    conditions: Sequence[Expr],
    scope: Scope,
    reduced: Sequence[Axis],
    zero: Const,
    counted: bool,
) -> Task:
    """The sum of ``expr`` over the dimensions ``reduced``, the last ones of ``scope``."""
    terms = [
        (term, sign) for term, sign in signed_terms(expr, mixed=True) if not is_zero(term)
    ]  # as Python's sum has
    if len(terms) < 2 or not any(_is_contraction(term, scope) for term, _ in terms):
        return (yield from _product(body, expr, conditions, scope, reduced, zero, counted))
    total: Value | None = None
    for term, sign in terms:
        value = yield from _product(body, term, conditions, scope, reduced, zero, counted)
        if total is None:
            total = value if sign > 0 else body.combine(NEGATIVE, [value], (zero.dtype, False), scope)
        else:
            total = body.combine(ADD if sign > 0 else SUBTRACT, [total, value], (zero.dtype, False), scope)
    assert total is not None
    return total


def _is_contraction(term: Expr, scope: Scope) -> bool:
    """Whether a product has no factor over all of its dimensions, so that it would be larger than its operands."""
    factors = product_of(term, whole=True).factors
    dims = [set(scope.dims_under(f.expr)) for f in factors]
    return len(factors) > 1 and all(d != set().union(*dims) for d in dims)


def _product(
    body: Body,
    expr: Expr,
    conditions: Sequence[Expr],
    scope: Scope,
    reduced: Sequence[Axis],
    zero: Const,
    counted: bool,
) -> Task:
    guards = tuple(g for condition in conditions for g in conjuncts(condition))
    job = Job(product_of(expr, whole=True).factors, guards, tuple(reduced), zero, counted=counted)
    inside = product_of(expr)
    under = replace(job, factors=inside.factors)
    if inside.guards and all(_is_met_by_zeros(body, g, under, scope) for g in inside.guards):
        job = under  # slices of one array with zeros around it, not a pad of each product
    return (yield from _conditions(body, job, scope))


# --- conditions


def _conditions(body: Body, job: Job, scope: Scope) -> Task:
    """Shortens reduced dimensions and moves conditions without them out of the sum."""
    guards = split_conditions(conjunction(job.guards), scope)
    if guards is None or any(known(d.hi) == 0 for d in job.reduced):
        return (yield job.zero, scope)
    single = next((d for d in job.reduced if known(d.hi) == 1 and not among(d, body.faces)), None)
    if single is not None:
        reduced = tuple(d for d in job.reduced if d is not single)
        inner = scope.replace(single, as_expr(0), [], deeper=0)
        return (yield from _conditions(body, replace(job, reduced=reduced), inner))
    guards = [g for g in guards if not _is_met_by_zeros(body, g, job, scope)]
    if (shorter := cut(guards, job.reduced, scope)) is not None:
        if shorter.dims is None:
            return (yield job.zero, scope)
        smaller = replace(job, guards=shorter.conditions, reduced=shorter.dims)
        return (yield from _conditions(body, smaller, shorter.scope))
    outer = [g for g in guards if not any(among(d, job.reduced) for d in guard_dims(g, scope))]
    on_data = tuple(g for g in outer if reads_of(g))
    inside = replace(
        job, guards=tuple(g for g in guards if not among(g, outer)), outside=(*job.outside, *on_data)
    )
    if outer and job.masked and not body.policy.facts.tests_pads and _moves_on(body, job, scope):
        return (yield from _strides(body, replace(job, guards=tuple(guards)), scope))
    if outer and job.masked and may_be_masked(body, job.factors, outer, scope):
        return (yield from _masked(body, inside, outer, scope))
    if outer:
        return (
            yield from guarded(body, outer, job.zero, scope, lambda part: _conditions(body, inside, part))
        )
    return (yield from _strides(body, inside, scope))


def _moves_on(body: Body, job: Job, scope: Scope) -> bool:
    """Whether another dimension is written out within this one: zeros around each term then stand on all sides at once, in one pad."""
    return overlapping([f.expr for f in job.factors], job.reduced, scope, job.budget) is not None


def _masked(body: Body, job: Job, guards: Sequence[Expr], scope: Scope) -> Task:
    """The sum at every point, and zero chosen where ``guards`` do not hold."""
    mask = body.named((yield from mask_value(guards, scope)))
    value, zero = (yield from _conditions(body, job, scope)), (yield job.zero, scope)
    return (
        value
        if identical(value, zero)
        else body.combine(SELECT, [mask, value, zero], (job.dtype, False), scope)
    )


def _is_met_by_zeros(body: Body, guard: Expr, job: Job, scope: Scope) -> bool:
    """Whether a tensor that is zero there, or read with zeros around it, makes the product zero wherever ``guard`` does not hold.

    The other factors are plain reads as well, of tensors that are not infinite themselves, so that none of them is infinite there.
    """
    reads = [f.expr for f in job.factors if isinstance(f.expr, Read) and not f.inverse]
    if len(reads) + sum(isinstance(f.expr, Const) for f in job.factors) < len(job.factors):
        return False
    zeros = [
        r
        for r in reads
        if (r.tensor in body.padded and keeps_in_range(guard, r, scope)) or _is_chosen_by(guard, r, scope)
    ]
    return bool(zeros) and all(among(f.expr, zeros) or not may_spoil(f) for f in job.factors)


def _is_chosen_by(guard: Expr, read: Read, scope: Scope) -> bool:
    """Whether ``read`` is of a tensor that is chosen to be 0 where ``guard``, a condition on two dimensions, does not hold."""
    match getattr(read.tensor, "body", None):
        case Call(op, (condition, _, Const(value))) if op is SELECT and not value:
            if len(guard_dims(guard, scope)) < 2:
                return False  # it shortens one
            assert isinstance(read.tensor, Compute)
            own = substitute(condition, dict(zip(read.tensor.axes, read.indices, strict=True)))
            return among(guard, split_conditions(own, scope) or ())
    return False


# --- strides


def _strides(body: Body, job: Job, scope: Scope) -> Task:
    """Takes an output dimension apart into digits where an index mixes its quotient with other dimensions."""
    by_data = [reads_data(f.expr) for f in job.factors]
    positions = [_positions(f, scope) for f in job.factors]
    found = product_digits(positions, by_data, job.reduced, scope.order)
    if found is None:
        return (yield from _overlaps(body, job, scope))
    digits = digits_of(found.dim, found.base, found.shift)
    value = yield from _conditions(
        body, job, scope.replace(found.dim, digits.meaning, [digits.high, digits.low])
    )
    return body.with_steps(value, *digits.joined(value.dims))


def _positions(factor: Factor, scope: Scope) -> list[Expr]:
    """The indices in ``factor`` that are no data, over the dimensions of ``scope``."""
    return [index for read in reads_of(factor.expr) for index in scope.indices(read)]


# --- overlaps


def _overlaps(body: Body, job: Job, scope: Scope) -> Task:
    """Unrolls a short reduced dimension that shares an index with another one without being a digit of it."""
    exprs = [f.expr for f in job.factors]
    rows = _rows(body, job, scope)
    if rows:
        along = replace(job, reduced=tuple(d for d in job.reduced if not among(d, rows)))
        value = body.named((yield from _overlaps(body, along, scope)))
        return reduced_call(body, "sum", value, rows, scope, job.dtype)
    facts = body.policy.facts
    fuses = facts.fuses_products
    # slices of one array, each multiplied by a number, are one loop, where each is read for itself
    moved = [e for e in exprs if not fuses or facts.reads_windows_again or len(scope.dims_under(e)) > 1]
    dim = overlapping(moved, job.reduced, scope, job.budget)
    if dim is not None and fuses and not body.in_tiles and _is_beside_short(exprs, dim, job, scope):
        dim = None
    apart = _shifted(job, scope) if dim is None and fuses and not body.in_tiles else None
    dim = _short(job, scope, fuses) if dim is None and apart is None else dim
    if dim is None and not fuses and not body.in_tiles:
        apart = _plane(job, scope)
    if apart is not None:
        return (yield from _for_each(body, job, scope, apart))
    if dim is None:
        return (yield from contraction(body, job, scope))
    body.report.note("shift-and-add")
    count = known(dim.hi) or 0
    rest = tuple(d for d in job.reduced if d is not dim)
    masked = job.masked or has_many_positions(job.factors, job.reduced, scope, job.budget)
    smaller = replace(job, reduced=rest, budget=job.budget // count, masked=masked, counted=False)
    make = lambda at: _conditions(body, smaller, at)  # noqa: E731
    return (yield from combined(body, ADD, dim, scope, job.dtype, make))


def _is_beside_short(exprs: Sequence[Expr], dim: Axis, job: Job, scope: Scope) -> bool:
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


def _short(job: Job, scope: Scope, fuses: bool) -> Axis | None:
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


def _plane(job: Job, scope: Scope) -> Axis | None:
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
    for dim in scope.order:
        alone = sum(dim in own for own in dims) == 1
        long = all(_points([d]) >= LONG_SUM for d in every if d is not dim)
        most = min(MOST_TERMS, job.budget) if long else FEW
        if alone and dim in every and not among(dim, job.reduced) and is_short(dim, most):
            return dim
    return None


def _shifted(job: Job, scope: Scope) -> Axis | None:
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


def _rows(body: Body, job: Job, scope: Scope) -> list[Axis]:
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
    if len(long) < 2 or _points(long[:-1]) < LONG_SUM or _shifted(inner, scope) is None:
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


def _for_each(body: Body, job: Job, scope: Scope, dim: Axis) -> Task:
    """One sum for each position of a short dimension of the result, side by side."""
    smaller = replace(job, budget=job.budget // (known(dim.hi) or 1))
    wide = [f for f in job.factors if among(dim, scope.dims_under(f.expr))]
    body.report.note("coordinates apart")
    return (
        yield from by_columns(body, wide, scope, dim, lambda at: _conditions(body, smaller, at), job.dtype)
    )

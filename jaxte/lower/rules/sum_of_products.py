"""Sums of products: one einsum over operands that are each evaluated on their own dimensions.

The steps, each of which hands a smaller sum to the next: sums of products become sums; conditions on one dimension
shorten it; conditions without reduced dimensions leave the sum; a dimension that is divided by a stride is taken
apart into digits; overlapping indices (``i + k``) are unrolled over their short dimension; what is left is an einsum, with
triangular and other remaining conditions as a mask on one operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.algebra.product import Factor, is_zero, may_spoil, product_of
from jaxte.algebra.sums import signed_terms
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, as_expr, conjunction, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.operators import ADD, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.walk import reads_data, reads_of, substitute
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.rules.by_columns import by_columns, combined, reduced_call
from jaxte.lower.rules.einsum import contraction
from jaxte.lower.rules.einsum_operands import Job, guard_dims
from jaxte.lower.rules.excluded_points import has_many_positions, may_be_masked
from jaxte.lower.rules.select import guarded, keeps_in_range, mask_value
from jaxte.lower.rules.short_dimensions import (
    is_beside_larger,
    is_beside_short,
    rows_of_shifts,
    shifting_result,
    short_dimension,
    short_result,
)
from jaxte.lower.views.condition_box import cut, split_conditions
from jaxte.lower.views.mixed_radix import digits_of, product_digits
from jaxte.lower.views.scope import Scope, overlapping
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute


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
    # as Python's sum has
    terms = [(term, sign) for term, sign in signed_terms(expr, mixed=True) if not is_zero(term)]
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
    rows = rows_of_shifts(body, job, scope)
    if rows:
        along = replace(job, reduced=tuple(d for d in job.reduced if not among(d, rows)))
        value = body.named((yield from _overlaps(body, along, scope)))
        return reduced_call(body, "sum", value, rows, scope, job.dtype)
    facts = body.policy.facts
    fuses = facts.fuses_products
    # slices of one array, each multiplied by a number, are one loop, where each is read for itself
    moved = [e for e in exprs if not fuses or facts.reads_windows_again or len(scope.dims_under(e)) > 1]
    dim = overlapping(moved, job.reduced, scope, job.budget)
    if dim is not None and fuses and not body.in_tiles and is_beside_short(exprs, dim, job, scope):
        dim = None
    if dim is not None and not fuses and not body.in_tiles and is_beside_larger(exprs, dim, job, scope):
        dim = None
    apart = shifting_result(job, scope) if dim is None and fuses and not body.in_tiles else None
    dim = short_dimension(job, scope, fuses) if dim is None and apart is None else dim
    if dim is None and not fuses and not body.in_tiles:
        apart = short_result(job, scope)
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


def _for_each(body: Body, job: Job, scope: Scope, dim: Axis) -> Task:
    """One sum for each position of a short dimension of the result, side by side."""
    smaller = replace(job, budget=job.budget // (known(dim.hi) or 1))
    wide = [f for f in job.factors if among(dim, scope.dims_under(f.expr))]
    body.report.note("coordinates apart")
    return (
        yield from by_columns(body, wide, scope, dim, lambda at: _conditions(body, smaller, at), job.dtype)
    )

"""What is left of a sum of products: one einsum, or a plain sum, over operands that are masked where they have to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.expr import ONE, Axis, Const
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import FEW, FEW_ELEMENTS, LARGE_RESULT, LONG_SUM
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SELECT
from jaxte.lower.arrays.elementwise import Apply, Kept, Name, Number, size
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.added_products import added_products
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.paces import SIZES
from jaxte.lower.cost.steps import compares
from jaxte.lower.cost.work import expensive_calls, points
from jaxte.lower.match.empty_sums import is_plain
from jaxte.lower.rewrites.short_axes import is_short
from jaxte.lower.rules.by_columns import again, by_columns, column_of, combined, reduced_call
from jaxte.lower.rules.einsum_operands import Job, grouped_factors, guard_dims, letters_of, masked_operands
from jaxte.lower.rules.excluded_points import needs_points, points_left
from jaxte.lower.rules.operand_order import in_good_order, natural_order
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import extent_of

_ONES, _MINUS_ONE = (Number(1), Number(1.0)), Number(-1)
_LONGEST_LINE = 110  # characters of a call, from which on its operands get names


def contraction(body: Body, job: Job, scope: Scope) -> Task:
    # written out: what is out of range where they do not hold is multiplied by no zero
    if job.guards and not job.reduced:
        return (yield multiplied(job.factors, job.guards), scope)
    if job.guards and not job.counted:
        dims = [set(scope.dims_under(f.expr)) for f in job.factors]
        tests = [(guard, set(guard_dims(guard, scope))) for guard in job.guards]
        if needs_points(job.factors, dims, tests, job.reduced):
            return (yield from _where_points_are(body, job, scope))
    outer = [f for f in job.factors if not any(among(d, job.reduced) for d in scope.dims_under(f.expr))]
    inner = [f for f in job.factors if not among(f, outer)]
    outer = [f for f in outer if not (isinstance(f.expr, Const) and f.expr.value == 1)]
    groups = grouped_factors(inner, scope, job.guards)
    if body.in_tiles and len(groups) == 1:
        dim = None if _is_one_loop(groups[0], job) else _short(job, scope)
        if dim is not None:
            return (yield from _written_out(body, job, scope, dim))
        if prod(extent_of(d.hi) for d in job.reduced) >= LONG_SUM and not job.guards:  # both would be masked
            groups = _halves(groups[0])
    elif body.in_tiles and (dim := _column(groups, job, scope)) is not None:
        (wide,) = (g for g in groups if any(among(dim, scope.dims_under(f.expr)) for f in g))
        make = lambda at: contraction(body, job, at)  # noqa: E731
        return (yield from by_columns(body, wide, scope, dim, make, job.dtype))
    if body.in_tiles and _is_whole(groups, scope) and points(scope.order) <= FEW_ELEMENTS:
        groups = [[f for members in groups for f in members]]  # one loop, where a call takes longer to start
    if body.policy.facts.adds_rows and not body.in_tiles and _is_along_rows(groups, job, scope):
        total = yield from _one_sum(body, groups, job, scope)
        return (yield from _scaled(body, total, outer, job, scope))
    if body.policy.facts.fuses_products:
        if _is_whole(groups, scope):
            groups = [[f for members in groups for f in members]]
        if len(groups) == 1 and len(job.reduced) == len(scope.order):
            groups, outer = (
                [[*groups[0], *(f for f in outer if _is_float(f))]],
                [f for f in outer if not _is_float(f)],
            )
    values = yield from masked_operands(body, groups, job, scope)
    total = _summed(body, values, job, scope)
    return (yield from _scaled(body, total, outer, job, scope))


def _where_points_are(body: Body, job: Job, scope: Scope) -> Task:
    """The sum where it has a point, zero elsewhere."""
    some = yield from points_left(body, job.guards, job.reduced, scope)
    value = yield from contraction(body, replace(job, counted=True), scope)
    if some is None or value.literal:
        return value
    return body.combine(SELECT, [some, value, (yield job.zero, scope)], (job.dtype, False), scope)


def _is_float(factor: Factor) -> bool:
    """Whether a factor is a number that may be multiplied within a sum: one number more would be a kernel of its own."""
    return isinstance(factor.expr, Const) and isinstance(factor.expr.value, float)


def _is_whole(groups: Sequence[Sequence[Factor]], scope: Scope) -> bool:
    """Whether one of several operands is computed over all dimensions, so that it would be an array for no product of matrices."""
    dims = [{d for f in members for d in scope.dims_under(f.expr)} for members in groups]
    every = set().union(*dims)
    return len(groups) > 1 and any(
        own == every and not is_plain(members) for own, members in zip(dims, groups, strict=True)
    )


def _is_along_rows(groups: Sequence[Sequence[Factor]], job: Job, scope: Scope) -> bool:
    """Whether a matrix that is computed is multiplied by vectors along its rows, so that what is added up lies apart.

    One sum of all factors takes no longer than a call. A matrix that exists is left to the call, as ``x.T @ r`` of JAX is, and so is one of functions
    that take long: calls along its rows and along its columns read one array, two sums would compute it twice.
    """
    matrix, vectors = list[Sequence[Factor]](), list[Sequence[Factor]]()
    for members in groups:
        along = all(among(d, job.reduced) for f in members for d in scope.dims_under(f.expr))
        (vectors if along else matrix).append(members)
    if not vectors or len(matrix) != 1 or (is_plain(matrix[0]) and len(matrix[0]) == 1):
        return False
    if expensive_calls([f.expr for f in matrix[0]]):
        return False
    every = {d for f in matrix[0] for d in scope.dims_under(f.expr)}
    if not all(d in every for d in job.reduced):
        return False
    order = [d for d in natural_order(multiplied(matrix[0]), scope) if among(d, every)]
    return not among(order[-1], job.reduced)


def _one_sum(body: Body, groups: Sequence[Sequence[Factor]], job: Job, scope: Scope) -> Task:
    """One pass over all factors, which shares no loop with others that read them: XLA on the CPU writes what several sums read as an array.

    What takes long to compute is shared all the same. Two factors over all dimensions are the operands of a product of columns, which
    is added up in blocks on every processor; of a sum it depends on the processor and on the number of columns.
    """
    factors = [f for members in groups for f in members]
    operands = [factors] if job.guards else _columns(factors, scope)
    before = body.tensors
    if body.policy.facts.drops_barriers and points(scope.order) >= LARGE_RESULT:
        own = [f.expr for f in factors if not expensive_calls([f.expr])]
        body.read_by({**before, **again(body, own)})
    values = yield from masked_operands(body, operands, job, scope)
    body.read_by(before)
    return _summed(body, values, job, scope)


def _columns(factors: list[Factor], scope: Scope) -> list[list[Factor]]:
    """A product as two operands that have all of its dimensions, if two of its factors have them."""
    dims = [set(scope.dims_under(f.expr)) for f in factors]
    every = set().union(*dims)
    whole = [f for f, own in zip(factors, dims, strict=True) if own == every and not f.inverse]
    if len(whole) < 2:
        return [factors]
    return [whole[:1], [f for f in factors if f is not whole[0]]]


def _is_one_loop(members: Sequence[Factor], job: Job) -> bool:
    """Whether the sum is one of many terms that are chosen or no products: a loop over few of them is around the others."""
    several = [f for f in members if not isinstance(f.expr, Const)]
    return (len(several) == 1 or bool(job.guards)) and prod(extent_of(d.hi) for d in job.reduced) >= LONG_SUM


def _short(job: Job, scope: Scope) -> Axis | None:
    """A reduced dimension of few points beside a long one that is kept: a loop over it would be the inner one."""
    kept = [extent_of(d.hi) for d in scope.order if not among(d, job.reduced)]
    short = [d for d in job.reduced if is_short(d) and max(kept, default=0) > FEW]
    return short[0] if short else None


def _written_out(body: Body, job: Job, scope: Scope, dim: Axis) -> Task:
    """The sum over ``dim`` term by term."""
    rest = replace(job, reduced=tuple(d for d in job.reduced if d is not dim), counted=False)
    return (yield from combined(body, ADD, dim, scope, job.dtype, lambda at: contraction(body, rest, at)))


def _column(groups: Sequence[Sequence[Factor]], job: Job, scope: Scope) -> Axis | None:
    """The kept dimension whose positions are taken one after the other; see ``by_columns``."""
    dims = [{d for f in members for d in scope.dims_under(f.expr)} for members in groups]
    return column_of(dims, [is_plain(members) for members in groups], job.reduced, scope)


def _halves(members: list[Factor]) -> list[list[Factor]]:
    """A product as two operands, so that its sum is a product of vectors, which XLA computes several terms at a time."""
    factors = [f for f in members if not isinstance(f.expr, Const)]
    above = [f for f in factors if not f.inverse]
    if len(above) < 2:
        return [members]
    return [above[:1], [f for f in members if f is not above[0]]]


def _summed(body: Body, values: Sequence[Value], job: Job, scope: Scope) -> Value:
    """The values multiplied and summed over the reduced dimensions."""
    used = [d for v in values for d in v.dims]
    lost = [d for d in job.reduced if not among(d, used)]
    values = [v for v in values if not (v.literal and v.code in _ONES)]
    out = tuple(d for d in scope.order if among(d, used) and not among(d, job.reduced))
    kind = (job.dtype, False)
    if not values:
        result = Value(_ONES[0], (), ("int32", True), literal=True)
    elif len(values) == 1:
        result = _plain_sum(body, values[0], job, scope)
    else:
        result = _einsum(body, values, out, job)
    for dim in lost:
        count = Value(size(dim.hi), (), ("int32", True), literal=True)
        if result.literal:
            if result.code is _ONES[0]:
                result = count
            else:
                result = Value(Apply(MULTIPLY, (result.code, count.code)), (), result.kind, literal=True)
        elif dim.hi is not ONE:
            result = body.combine(MULTIPLY, [result, count], kind, scope)
    return result


def _plain_sum(body: Body, value: Value, job: Job, scope: Scope) -> Value:
    if not any(among(d, job.reduced) for d in value.dims):
        return body.in_order(value, scope)
    if body.in_tiles and _is_in_long_rows(value, job):
        value = body.named(replace(value, code=Kept(value.code, "apart")))
    return reduced_call(body, "sum", value, job.reduced, scope, job.dtype)


def _is_in_long_rows(value: Value, job: Job) -> bool:
    """Whether a routine adds up what is computed in vectors, if it exists; what is chosen exists in any case."""
    if (
        not isinstance(value.code, Apply)
        or value.kind != (job.dtype, False)
        or job.dtype not in ("float32", "float64")
    ):
        return False
    row = value.dims[-1]
    is_summed = identical(job.reduced, (row,)) and extent_of(row.hi) >= SIZES.reduced
    return is_summed and not any(compares(f.expr) for f in job.factors)


def _einsum(body: Body, values: Sequence[Value], out: tuple[Axis, ...], job: Job) -> Value:
    values = in_good_order(values, out, body.policy.facts.copies_for_products)
    letters = letters_of(values, out)
    inputs = ",".join("".join(letters[d] for d in v.dims) for v in values)
    result = "".join(letters[d] for d in out)
    node = Einsum(f"{inputs}->{result}", tuple(v.code for v in values))
    while len(body.printer.text(node)) > _LONGEST_LINE:
        longest = max(range(len(values)), key=lambda n: len(body.text(values[n])))
        if isinstance(values[longest].code, Name):
            break
        values = [body.named(v) if n == longest else v for n, v in enumerate(values)]
        node = Einsum(node.spec, tuple(v.code for v in values))
    body.report.note("einsum")
    made = added_products(node) if body.policy.facts.copies_for_products else node
    return body.cast(Value(made, out, (node.kind[0], False)), job.dtype)


def _scaled(body: Body, total: Value, outer: Sequence[Factor], job: Job, scope: Scope) -> Task:
    """The sum times the factors that do not depend on what is summed over."""
    kind = (job.dtype, False)
    above = [f.expr for f in outer if not f.inverse]
    below = [f.expr for f in outer if f.inverse]
    if total.literal and above and total.code is _ONES[0]:
        total = body.cast((yield above.pop(0), scope), job.dtype)
    for expr in above:
        factor = yield expr, scope
        if factor.literal and factor.code is _MINUS_ONE:
            total = body.combine(NEGATIVE, [total], kind, scope)
        else:
            total = body.combine(MULTIPLY, [factor, total], kind, scope)
    for expr in below:
        divisor = yield expr, scope
        total = body.combine(DIVIDE, [total, divisor], kind, scope)
    return body.cast(total, job.dtype) if total.literal else total

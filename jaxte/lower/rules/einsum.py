"""What is left of a sum of products: one einsum, or a plain sum, over operands that are masked where they have to be."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from math import prod

from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.expr import ONE, Axis, Const, Expr, Read, cast
from jaxte.lang.identity import among
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SELECT
from jaxte.lang.walk import free_axes, reads_of
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.leaves import Name, Number, size
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.reductions import Reduced
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.limits import FEW, LONG_SUM, MOST_UNROLLED
from jaxte.lower.match.empty_sums import points_shadow
from jaxte.lower.rewrites.unroll import is_short
from jaxte.lower.rules.by_columns import by_columns, column_of
from jaxte.lower.rules.einsum_letters import in_good_order, letters_of
from jaxte.lower.rules.positions import combined
from jaxte.lower.rules.select import keeps_in_range
from jaxte.lower.views.condition_box import condition_dims
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import dims_of, extent_of

_ONES, _MINUS_ONE = (Number(1), Number(1.0)), Number(-1)
_LONGEST_LINE = 110


@dataclass(frozen=True)
class Job:
    """The sum of a product of ``factors`` over the dimensions ``reduced``, where ``guards`` hold.

    ``budget`` is how many copies unrolling may still make; ``masked`` whether there are so many of them that conditions on the
    output are masks.
    """

    factors: tuple[Factor, ...]
    guards: tuple[Expr, ...]
    reduced: tuple[Axis, ...]
    zero: Const
    budget: int = MOST_UNROLLED
    masked: bool = False

    @property
    def dtype(self) -> str:
        return self.zero.dtype


def dims_under(expr: Expr, scope: Scope) -> list[Axis]:
    """The dimensions of ``scope`` that ``expr`` depends on."""
    found: dict[Axis, None] = {}
    for axis in free_axes(expr):
        for dim in dims_of(scope.table[axis]) if axis in scope.table else (axis,):
            found[dim] = None
    return [d for d in scope.order if d in found]


def guard_dims(guard: Expr, scope: Scope) -> list[Axis]:
    """The dimensions that a condition depends on."""
    return condition_dims(guard, scope) or dims_under(guard, scope)


def contraction(body: Body, job: Job, scope: Scope) -> Task:
    if (
        job.guards and not job.reduced
    ):  # written out: what is out of range where they do not hold is multiplied by no zero
        return (yield multiplied(job.factors, job.guards), scope)
    outer = [f for f in job.factors if not _meets(f.expr, job.reduced, scope)]
    inner = [f for f in job.factors if not among(f, outer)]
    outer = [f for f in outer if not (isinstance(f.expr, Const) and f.expr.value == 1)]
    groups = _groups(inner, scope)
    if body.in_tiles and len(groups) == 1:
        dim = None if _is_one_loop(groups[0], job) else _short(job, scope)
        if dim is not None:
            return (yield from _written_out(body, job, scope, dim))
        if prod(extent_of(d.hi) for d in job.reduced) >= LONG_SUM and not job.guards:  # both would be masked
            groups = _halves(groups[0])
    elif body.in_tiles and (dim := _column(groups, job, scope)) is not None:
        (wide,) = (g for g in groups if any(among(dim, dims_under(f.expr, scope)) for f in g))
        make = lambda at: contraction(body, job, at)  # noqa: E731
        return (yield from by_columns(body, wide, scope, dim, make, job.dtype))
    if body.policy.facts.fuses_products:
        if _is_whole(groups, scope):
            groups = [[f for members in groups for f in members]]
        if len(groups) == 1 and len(job.reduced) == len(scope.order):
            groups, outer = (
                [[*groups[0], *(f for f in outer if _is_float(f))]],
                [f for f in outer if not _is_float(f)],
            )
    values = yield from _operands(body, groups, job, scope)
    total = _summed(body, values, job, scope)
    return (yield from _scaled(body, total, outer, job, scope))


def _is_float(factor: Factor) -> bool:
    """Whether a factor is a number that may be multiplied within a sum: one number more would be a kernel of its own."""
    return isinstance(factor.expr, Const) and isinstance(factor.expr.value, float)


def _is_whole(groups: Sequence[Sequence[Factor]], scope: Scope) -> bool:
    """Whether one of several operands is computed over all dimensions, so that it would be an array for no product of matrices."""
    dims = [{d for f in members for d in dims_under(f.expr, scope)} for members in groups]
    every = set().union(*dims)
    return len(groups) > 1 and any(
        own == every and not _is_plain(members) for own, members in zip(dims, groups, strict=True)
    )


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
    rest = replace(job, reduced=tuple(d for d in job.reduced if d is not dim))
    return (yield from combined(body, ADD, dim, scope, job.dtype, lambda at: contraction(body, rest, at)))


def _column(groups: Sequence[Sequence[Factor]], job: Job, scope: Scope) -> Axis | None:
    """The kept dimension whose positions are taken one after the other; see ``by_columns``."""
    dims = [{d for f in members for d in dims_under(f.expr, scope)} for members in groups]
    return column_of(dims, [_is_plain(members) for members in groups], job.reduced, scope)


def _halves(members: list[Factor]) -> list[list[Factor]]:
    """A product as two operands, so that its sum is a product of vectors, which XLA computes several terms at a time."""
    factors = [f for f in members if not isinstance(f.expr, Const)]
    above = [f for f in factors if not f.inverse]
    if len(above) < 2:
        return [members]
    return [above[:1], [f for f in members if f is not above[0]]]


def _meets(expr: Expr, dims: Sequence[Axis], scope: Scope) -> bool:
    return any(among(d, dims) for d in dims_under(expr, scope))


def _groups(factors: Sequence[Factor], scope: Scope) -> list[list[Factor]]:
    """Factors over the same dimensions together; divisors go to the factor that they fit best."""
    groups: list[tuple[set[Axis], list[Factor]]] = []
    for factor in sorted(factors, key=lambda f: f.inverse):
        dims = set(dims_under(factor.expr, scope))
        home = next((g for g in groups if g[0] == dims), None)
        if home is None and factor.inverse:
            home = next((g for g in groups if dims <= g[0]), None)
        if home is None:
            groups.append((dims, [factor]))
        else:
            home[1].append(factor)
    return [members for _, members in groups]


def _operands(
    body: Body, groups: list[list[Factor]], job: Job, scope: Scope
) -> Generator[tuple[Expr, Scope], Value, list[Value]]:
    """The value of each group of factors, masked by the conditions that are left."""
    if not groups and job.guards:
        groups = [[Factor(cast(ONE, job.dtype))]]
    masks: list[list[Expr]] = [[] for _ in groups]
    for guard in job.guards:
        for number in _masked_groups(body, guard, groups, scope):
            masks[number].append(guard)
    values: list[Value] = []
    for members, tests in zip(groups, masks, strict=True):
        expr = multiplied(members, tests)
        values.append((yield expr, scope.arranged(_operand_order(body, expr, scope))))
    return values


def _operand_order(body: Body, expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions as the tensors have them; in tiles, which are in cache, with the longest one last."""
    order = natural_order(expr, scope)
    if not body.in_tiles or isinstance(expr, Read):
        return order
    return tuple(sorted(order, key=lambda d: extent_of(d.hi)))


def _masked_groups(
    body: Body, guard: Expr, groups: Sequence[Sequence[Factor]], scope: Scope
) -> Sequence[int]:
    """The operands to mask by ``guard``: one is enough for a zero, unless another one is infinite or NaN there.

    That is so for functions of what is read out of range, and may be so for any function. Plain reads are masked only if
    they are all there is; where a plain read is out of range, and thus zero, whenever ``guard`` fails, no mask is needed.
    """
    wanted = set(guard_dims(guard, scope))
    own = [{d for f in members for d in dims_under(f.expr, scope)} for members in groups]
    chosen = [
        n
        for n, members in enumerate(groups)
        if not _is_plain(members) and _may_mask(body, members, wanted, own[n])
    ]
    plain = [f.expr for members in groups if _is_plain(members) for f in members]
    if chosen or any(isinstance(e, Read) and keeps_in_range(guard, e, scope) for e in plain):
        return chosen
    return [max(range(len(own)), key=lambda n: (len(wanted & own[n]), -len(own[n]), -n))]


def _is_plain(members: Sequence[Factor]) -> bool:
    """Whether there are elements only: no function, and no position that is data, where NaN is read out of range."""
    return all(
        isinstance(f.expr, (Read, Const)) and not f.inverse and not reads_of(*f.expr.children)
        for f in members
    )


def _may_mask(body: Body, members: Sequence[Factor], wanted: set[Axis], own: set[Axis]) -> bool:
    """Whether a group can be infinite where the condition on ``wanted`` fails."""
    return wanted <= own or (bool(wanted & own) and any(body.leaks(f.expr) for f in members))


def natural_order(expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions in the order in which the largest read has them, so that it need not be transposed.

    Where no read has any, as in ``sin(w[0] * t * h)``, in that of the expression: all who need it compute the same array, which XLA does once. The
    axes of a reduction within ``expr`` are not among them yet.
    """
    best: tuple[Axis, ...] = ()
    for read in reads_of(expr):
        if any(reads_of(i) for i in read.indices):
            continue
        found = scope.view(read)
        if not isinstance(found, Refusal):
            dims = tuple(d for d in found.dims if among(d, scope.order))
            best = dims if len(dims) > len(best) else best
    if not best:
        met = (d for axis in free_axes(expr) for d in dims_of(scope.table.get(axis, axis)))
        best = tuple(d for d in dict.fromkeys(met) if among(d, scope.order))
    return (*best, *(d for d in scope.order if not among(d, best)))


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
            result = count if result.code is _ONES[0] else _times_size(result, count)
        elif dim.hi is not ONE:
            result = body.combine(MULTIPLY, [result, count], kind, scope)
    return result


def _times_size(a: Value, b: Value) -> Value:
    return Value(Apply(MULTIPLY, (a.code, b.code)), (), a.kind, literal=True)


def _plain_sum(body: Body, value: Value, job: Job, scope: Scope) -> Value:
    if not any(among(d, job.reduced) for d in value.dims):
        return body.in_order(value, scope)
    return reduced_call(body, "sum", value, job.reduced, scope, job.dtype)


def reduced_call(
    body: Body,
    function: str,
    value: Value,
    reduced: Sequence[Axis],
    scope: Scope,
    dtype: str,
    start: Node | None = None,
) -> Value:
    """A reducing function of jnp over some of the dimensions of ``value``."""
    axes = tuple(n for n, d in enumerate(value.dims) if among(d, reduced))
    left = tuple(d for d in value.dims if not among(d, reduced))
    # under x64 JAX would widen integers
    widened = function in ("sum", "prod") and not dtype.startswith(("f", "b", "c"))
    body.report.note(function)
    node = Reduced(function, value.code, axes if left else None, dtype if widened else "", start)
    result = Value(node, left, (dtype, False))
    result = body.in_order(result, scope)
    return body.cast(result, dtype) if value.dtype == dtype else body.cast(result, dtype, always=True)


def _einsum(body: Body, values: Sequence[Value], out: tuple[Axis, ...], job: Job) -> Value:
    values = in_good_order(values, out)
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
    value = Value(node, out, (values[0].dtype, False))
    return body.cast(value, job.dtype, always=any(v.dtype != job.dtype for v in values))


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
    if job.guards and any(
        body.leaks(expr) for expr in below
    ):  # zeros around a divisor: 0 / 0 where no point is
        some = points_shadow(job.guards, job.reduced, scope)
        if some is not None:
            mask, zero = (yield some, scope), (yield job.zero, scope)
            total = body.combine(SELECT, [mask, total, zero], kind, scope)
    return body.cast(total, job.dtype) if total.literal else total

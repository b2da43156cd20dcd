"""The letters and the operands of an einsum: factors over the same dimensions together, masked where a condition is left."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from string import ascii_letters

from jaxte.algebra.data_conditions import asked_together
from jaxte.algebra.product import Factor, multiplied
from jaxte.lang.expr import ONE, Axis, Const, Expr, Read, cast
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import MOST_UNROLLED, NARROW
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, reads_data, reads_of
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import points
from jaxte.lower.match.empty_sums import is_plain, spoils
from jaxte.lower.rules.excluded_points import points_left, with_masked_together
from jaxte.lower.rules.select import keeps_in_range
from jaxte.lower.views.condition_box import condition_dims
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import dims_of, extent_of


def letters_of(values: Sequence[Value], out: Sequence[Axis]) -> dict[Axis, str]:
    """One letter for each dimension of ``values``, whose product is over ``out``."""
    return _in_memory_order(_letters([d for v in values for d in v.dims]), values, out)


def _letters(dims: Sequence[Axis]) -> dict[Axis, str]:
    """One letter for each dimension: the axis's own name where that is a letter, each letter once."""
    found: dict[Axis, str] = {}
    distinct = list(dict.fromkeys(dims))
    for dim in distinct:
        first = dim.name[:1]
        if len(dim.name) == 1 and first.isascii() and first.isalpha() and first not in found.values():
            found[dim] = first
    spare = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for dim in distinct:
        if dim in found:
            continue
        first = dim.name[:1]
        if first.isascii() and first.isalpha() and first not in found.values():
            found[dim] = first
        else:
            found[dim] = next(letter for letter in spare if letter not in found.values())
    return found


def _in_memory_order(
    letters: dict[Axis, str], values: Sequence[Value], out: Sequence[Axis]
) -> dict[Axis, str]:
    """``letters`` with those of what is summed over in the order in which the largest operand has them.

    ``jnp.einsum`` contracts dimensions in the order of the alphabet: by other letters XLA transposes operands that lie as they should.
    """
    largest = max(values, key=lambda v: prod(extent_of(d.hi) for d in v.dims))
    summed = [d for d in dict.fromkeys((*largest.dims, *letters)) if not among(d, out)]
    found = dict(letters)
    for before, dim in pairwise(summed):
        if found[dim] < found[before]:
            free = (c for c in ascii_letters if c > found[before] and c not in found.values())
            found[dim] = next(free, found[dim])
    return found


def in_good_order(values: Sequence[Value], out: Sequence[Axis], turns: bool) -> Sequence[Value]:
    """``values``, whose product is over ``out``, in the order in which XLA copies least of two operands; ``turns`` where it is XLA on the CPU."""
    if len(values) != 2:
        return values
    for vector, other in (values, values[::-1]):
        at_first = _summed_first(vector, other, out)
        if at_first is not None:
            return [vector, other] if at_first is _is_in_order(vector, other, out) else [other, vector]
    for lies, other in (values, values[::-1]) if turns else ():
        if _lies_as_second(lies, other, out) and not _lies_as_second(other, lies, out):
            return [lies, other]
    return _small_first(values, out)


def _lies_as_second(value: Value, other: Value, out: Sequence[Axis]) -> bool:
    """Whether ``value`` lies as the second operand of matrices for each element has to, what is summed in front of its own, where the product is in no order of ``out``.

    XLA on the CPU turns such a product around before it copies it into that order, so that it is the second one if it is written first. Otherwise it is the first, with what is summed in
    front, and the routine for many small matrices does not take it: 26 random products take 0.55 to 1.02 of the time, and none more.
    """
    both = [d for d in out if among(d, value.dims) and among(d, other.dims)]
    summed = [d for d in value.dims if not among(d, out)]
    alone, theirs = ([d for d in v.dims if among(d, out) and not among(d, both)] for v in (value, other))
    if not (both and summed and alone and theirs) or not identical(value.dims, (*both, *summed, *alone)):
        return False
    return not any(
        identical((*both, *one, *two), tuple(out)) for one, two in ((alone, theirs), (theirs, alone))
    )


def _summed_first(vector: Value, other: Value, out: Sequence[Axis]) -> bool | None:
    """Whether ``other`` has the dimensions that are summed over in front of those that only it has, or behind them.

    None where they stand otherwise, where ``vector`` is a matrix, or ``other`` is. The first operand of a product of matrices has what is
    summed behind, the second one in front. XLA on the CPU copies what has it in the other place, matrices excepted. A vector may be either. Matrices of which
    there is one for each element of a dimension behind are copied in any case, and in the order that they have the copy is the same for sums over either side.
    """
    summed = [d for d in vector.dims if not among(d, out)]
    left = [d for d in other.dims if not (among(d, out) and among(d, vector.dims))]
    is_matrix = len(left) < 2 or (len(left) == 2 and identical(tuple(left), other.dims[-2:]))
    if not summed or is_matrix or any(among(d, out) and not among(d, other.dims) for d in vector.dims):
        return None
    if set(left[: len(summed)]) == set(summed):
        return True
    return False if set(left[-len(summed) :]) == set(summed) else None


def _is_in_order(vector: Value, other: Value, out: Sequence[Axis]) -> bool:
    """Whether the product has its dimensions in the order of ``out``: ``jnp.einsum`` multiplies the operands as they are written then, and the other way round otherwise."""
    both = [d for d in out if among(d, vector.dims)]
    return identical((*both, *(d for d in other.dims if among(d, out) and not among(d, both))), tuple(out))


def _small_first(values: Sequence[Value], out: Sequence[Axis]) -> Sequence[Value]:
    """Two ``values``, the one of fewer elements first, where the product of matrices has its dimensions in another order than ``out``.

    The dimensions of the larger operand are those that change fastest in that product then, and the copy that brings it into order moves rows. (A layer in
    tensor-train form takes half of the time, forward and backward.)
    """
    dims = [set(v.dims) for v in values]
    both = [d for d in out if all(d in own for own in dims)]
    alone = [[d for d in v.dims if among(d, out) and not among(d, both)] for v in values]
    given = [(*both, *alone[0], *alone[1]), (*both, *alone[1], *alone[0])]
    summed = prod(extent_of(d.hi) for d in dims[0] & dims[1] if not among(d, out))
    if summed < NARROW or not all(alone) or any(identical(order, tuple(out)) for order in given):
        return values
    sizes = [prod(extent_of(d.hi) for d in v.dims) for v in values]
    return [values[1], values[0]] if sizes[1] < sizes[0] else values


@dataclass(frozen=True)
class Job:
    """The sum of a product of ``factors`` over the dimensions ``reduced``, where ``guards`` hold.

    ``budget`` is how many copies unrolling may still make; ``masked`` whether there are so many of them that conditions on the
    output are masks; ``counted`` whether the result is not read where the sum has no point. ``outside`` are conditions on data at points of the
    result: where they do not hold, it is not read.
    """

    factors: tuple[Factor, ...]
    guards: tuple[Expr, ...]
    reduced: tuple[Axis, ...]
    zero: Const
    outside: tuple[Expr, ...] = ()
    budget: int = MOST_UNROLLED
    masked: bool = False
    counted: bool = False

    @property
    def dtype(self) -> str:
        return self.zero.dtype


def guard_dims(guard: Expr, scope: Scope) -> Sequence[Axis]:
    """The dimensions that a condition depends on."""
    return condition_dims(guard, scope) or scope.dims_under(guard)


def grouped_factors(
    factors: Sequence[Factor], scope: Scope, guards: Sequence[Expr] = ()
) -> list[list[Factor]]:
    """Factors over the same dimensions together; divisors go to the factor that they fit best, what ``guards`` protect to what they mask."""
    groups: list[tuple[set[Axis], list[Factor]]] = []
    for factor in sorted(factors, key=lambda f: f.inverse):
        dims = set(scope.dims_under(factor.expr))
        home = next((g for g in groups if g[0] == dims), None)
        if home is None and factor.inverse:
            home = next((g for g in groups if dims <= g[0]), None)
        if home is None:
            groups.append((dims, [factor]))
        else:
            home[1].append(factor)
    masks = [(guard, set(guard_dims(guard, scope))) for guard in guards]
    return with_masked_together([members for _, members in groups], [dims for dims, _ in groups], masks)


def masked_operands(
    body: Body, groups: list[list[Factor]], job: Job, scope: Scope
) -> Generator[tuple[Expr, Scope], Value, list[Value]]:
    """The value of each group of factors, masked by the conditions that are left."""
    if not groups and job.guards:
        groups = [[Factor(cast(ONE, job.dtype))]]
    masks: list[list[Expr]] = [[] for _ in groups]
    partly: list[list[Expr]] = [[] for _ in groups]
    for guard in job.guards:
        chosen, beside = _masked_groups(body, guard, groups, scope)
        for number in chosen:
            masks[number].append(guard)
        for number in beside:
            partly[number].append(guard)
    values: list[Value] = []
    for members, tests, others in zip(groups, masks, partly, strict=True):
        expr = multiplied(members, tests)
        at = scope.arranged(_operand_order(body, expr, scope))
        value = yield expr, at
        own = {d for f in members for d in scope.dims_under(f.expr)}
        tested = [
            (guard, {d for d in guard_dims(guard, scope) if d not in own})
            for guard in (*job.guards, *job.outside)
        ]
        for together, rest in asked_together(tested, others):
            some = yield from points_left(body, together, [d for d in scope.order if d in rest], at)
            if some is not None:
                value = body.combine(SELECT, [some, value, (yield job.zero, at)], value.kind, at)
        values.append(value)
    return values


def _operand_order(body: Body, expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions as the tensors have them; in tiles, which are in cache, with the longest one last."""
    order = operand_order(body, expr, scope)
    if not body.in_tiles or isinstance(expr, Read):
        return order
    return tuple(sorted(order, key=lambda d: extent_of(d.hi)))


def _masked_groups(
    body: Body, guard: Expr, groups: Sequence[Sequence[Factor]], scope: Scope
) -> tuple[Sequence[int], Sequence[int]]:
    """The operands to mask by ``guard``: one is enough for a zero, unless another one is infinite or NaN there.

    That is so for functions of what is read out of range, and may be so for any function. Plain reads are masked only if
    they are all there is; where a plain read is out of range, and thus zero, whenever ``guard`` fails, no mask is needed.

    Returns:
        Those to mask, and those to mask where ``guard`` fails at all positions of the dimensions that they do not have.
    """
    wanted = set(guard_dims(guard, scope))
    own = [{d for f in members for d in scope.dims_under(f.expr)} for members in groups]
    infinite = [spoils(members, guard) for members in groups]
    chosen = [
        n
        for n, members in enumerate(groups)
        if (infinite[n] or not is_plain(members))
        and (wanted <= own[n] or (wanted & own[n] and any(body.leaks(f.expr) for f in members)))
    ]
    beside = [n for n in range(len(groups)) if infinite[n] and wanted & own[n] and n not in chosen]
    plain = [f.expr for members in groups if is_plain(members) for f in members]
    if chosen or any(isinstance(e, Read) and keeps_in_range(guard, e, scope) for e in plain):
        return chosen, beside
    rest = [n for n in range(len(own)) if n not in beside] or range(len(own))
    best = max(rest, key=lambda n: (len(wanted & own[n]), -len(own[n]), -n))
    return [best], [n for n in beside if n != best]


def operand_order(body: Body, expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions in the order in which what is reduced is written: of the largest read, or where copies in another order are dear, of as many as agree."""
    return agreed_order(expr, scope) if body.policy.facts.copies_transposed else natural_order(expr, scope)


def agreed_order(expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions in an order in which all reads have theirs, ``i, j, k`` for ``h[i, k]``, ``g[j, k]`` and ``H[i, j]``; where some contradict
    others, in that of the larger ones.
    """
    wanted = _orders_of_reads(expr, scope)
    before: dict[Axis, set[Axis]] = {d: set() for d in scope.order}
    for dims in sorted(wanted, key=lambda dims: -points(dims)):
        if not any(later in before[d] for n, d in enumerate(dims) for later in dims[n + 1 :]):
            for n, d in enumerate(dims):
                earlier = {d, *before[d]}
                for later in dims[n + 1 :]:
                    for follows in (later, *(a for a, own in before.items() if later in own)):
                        before[follows] |= earlier
    found: dict[Axis, None] = {}
    left = natural_order(expr, scope)
    while len(found) < len(left):
        found[next(d for d in left if d not in found and before[d] <= found.keys())] = None
    return tuple(found)


def _orders_of_reads(expr: Expr, scope: Scope) -> list[tuple[Axis, ...]]:
    """The dimensions of each read of several, in the order in which its tensor has them."""
    reduced_first = scope.arranged(scope.order[::-1])
    views = [reduced_first.view(r) for r in reads_of(expr) if not any(map(reads_of, r.indices))]
    orders = [tuple(d for d in v.dims if among(d, scope.order)) for v in views if not isinstance(v, Refusal)]
    return [dims for dims in dict.fromkeys(orders) if len(dims) > 1]


def natural_order(expr: Expr, scope: Scope) -> tuple[Axis, ...]:
    """The dimensions in the order in which the largest read has them, so that it need not be transposed.

    Where no read has any, as in ``sin(w[0] * t * h)``, in that of the expression: all who need it compute the same array, which XLA does once. The
    axes of a reduction within ``expr`` are not among them yet. Beside reads at positions that are data, vectors say nothing: such elements are summed
    along rows (over the first of three dimensions, a stack of interpolated traces takes four times as long).
    """
    at_data = reads_data(expr)
    best: tuple[Axis, ...] = ()
    reduced_first = scope.arranged(scope.order[::-1])  # as rows, whose sums are sums of vectors
    for read in reads_of(expr):
        if any(reads_of(i) for i in read.indices):
            continue
        found = reduced_first.view(read)
        if not isinstance(found, Refusal):
            dims = tuple(d for d in found.dims if among(d, scope.order))
            best = dims if len(dims) > max(len(best), at_data) else best
    if not best and at_data:
        return scope.order
    if not best:
        met = (d for axis in free_axes(expr) for d in dims_of(scope.table.get(axis, axis)))
        best = tuple(d for d in dict.fromkeys(met) if among(d, scope.order))
    return (*best, *(d for d in scope.order if not among(d, best)))

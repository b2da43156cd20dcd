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
from jaxte.lang.graphs import among
from jaxte.lang.limits import MOST_UNROLLED
from jaxte.lang.operators import SELECT
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.match.empty_sums import is_plain, spoils
from jaxte.lower.rules.excluded_points import points_left, with_masked_together
from jaxte.lower.rules.operand_order import operand_order
from jaxte.lower.rules.select import keeps_in_range
from jaxte.lower.views.condition_box import condition_dims
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import extent_of


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
        own = {d for f in members for d in scope.dims_under(f.expr)}
        elsewhere = {d for g in groups if g is not members for f in g for d in scope.dims_under(f.expr)}
        alone = [d for d in job.reduced if not among(d, elsewhere)]
        at = scope.arranged(_operand_order(body, expr, scope, alone))
        value = yield expr, at
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


def _operand_order(body: Body, expr: Expr, scope: Scope, alone: Sequence[Axis]) -> tuple[Axis, ...]:
    """The dimensions as the tensors have them; in tiles, which are in cache, with the longest one last."""
    order = operand_order(body, expr, scope, alone)
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

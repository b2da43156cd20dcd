"""Operands that may be infinite at points that a condition excludes: an operand of zeros beside them makes NaN of these.

``sum over i, k of X[i] * (1 / Y[k]) where M[i, k] > 0`` as the product of ``where(M > 0, X[:, None], 0)`` and ``1 / Y`` is NaN where ``Y[k]`` is zero,
whatever ``M`` says of that ``k``. What may be infinite is therefore multiplied where the mask is, if the masked array has its dimensions; otherwise
it is zero where no point of the others counts (``M[:, k]`` all false). What the condition does not depend on at all stands outside, where the sum has no point.

Sums over many shifts in which each position counts in a part of the output only, as the sums of an adjoint do.

``dX[i] = sum over k of (f(X[i], H[i - k]) where k <= i < n + k)`` written out is a sum of as many slices as there are positions.
Zeros around each of them would make the slices pads of computed values, in which XLA tests every element, and which it
keeps in memory from about fifteen on: ten times slower than one loop. Where all that is read out of range has zeros around it
anyway, each term is computed for the whole output and chosen by ``jnp.where``, and all of them are one loop. Where pads are fused (not ``tests_pads``)
each term is computed where it counts, as the forward pass computes it, and padded on all sides at once: what both ends of a difference receive shares it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from jaxte.algebra.product import Factor, may_be_infinite, may_spoil
from jaxte.lang.expr import Axis, Const, Expr, Read, conjunction
from jaxte.lang.graphs import among
from jaxte.lang.walk import reads_of
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.match.empty_sums import points_shadow, spoils
from jaxte.lower.rules.by_columns import reduced_call
from jaxte.lower.views.condition_box import box_of, usable
from jaxte.lower.views.scope import Scope, overlaps
from jaxte.sets.intervals import known, surely_inside
from jaxte.sets.isl_text import is_decidable

Dims = set[Axis]


def with_masked_together(
    groups: list[list[Factor]], dims: Sequence[Dims], guards: Sequence[tuple[Expr, Dims]]
) -> list[list[Factor]]:
    """``groups``, of which those that may be infinite are part of one whose mask has their dimensions.

    Args:
        groups: the operands.
        dims: the dimensions of each.
        guards: the conditions, each with its dimensions.
    """
    groups, own = [list(members) for members in groups], [set(d) for d in dims]
    for guard, wanted in guards:
        for n in reversed(range(len(groups))):
            if not own[n] & wanted or wanted <= own[n] or not spoils(groups[n], guard):
                continue
            others = [m for m in range(len(groups)) if m != n and own[n] <= own[m] | wanted]
            if others:
                home = max(others, key=lambda m: (len(wanted & own[m]), -len(own[m]), -m))
                groups[home] += groups[n]
                own[home] |= own[n]
                del groups[n], own[n]
    return groups


def needs_points(
    factors: Sequence[Factor],
    dims: Sequence[Dims],
    guards: Sequence[tuple[Expr, Dims]],
    reduced: Sequence[Axis],
) -> bool:
    """Whether a factor may be infinite that a condition on what is summed over does not depend on: times the zero of a sum without points it is NaN."""
    inner = [{d for d in own if among(d, reduced)} for own in dims]
    return any(
        not own & wanted and may_spoil(factor)
        for factor, own in zip(factors, inner, strict=True)
        for _, wanted in guards
    )


def points_left(
    body: Body, guards: Sequence[Expr], reduced: Sequence[Axis], scope: Scope
) -> Generator[tuple[Expr, Scope], Value, Value | None]:
    """Where in ``scope`` a point of ``reduced`` is left, as an array of booleans; None where that is everywhere."""
    if all(map(is_decidable, guards)):
        some = points_shadow(guards, reduced, scope)
        return None if some is None else (yield some, scope)
    mask = yield conjunction(list(guards)), scope
    own = [d for d in mask.dims if among(d, reduced)]
    return reduced_call(body, "any", mask, own, scope, "bool") if own else mask


MASKED = "masks in place of pads"
_FEWEST = 10  # positions; fewer pads are as fast


def has_many_positions(factors: Sequence[Factor], reduced: Sequence[Axis], scope: Scope, budget: int) -> bool:
    """Whether the sum over ``reduced`` is written out in many terms."""
    count = 1
    for extent in overlaps([f.expr for f in factors], reduced, scope, budget).values():
        count *= extent
    return count >= _FEWEST


def may_be_masked(body: Body, factors: Sequence[Factor], guards: Sequence[Expr], scope: Scope) -> bool:
    """Whether a product can be computed where ``guards``, conditions on the output, do not hold, at little more work."""
    return (
        MASKED not in body.policy.without
        and body.policy.facts.tests_pads
        and all(_leaves_most(guard, scope) for guard in guards)
        and not any(may_be_infinite(f) for f in factors)
        and all(_is_slice(body, read, scope) for f in factors for read in reads_of(f.expr))
        and not all(isinstance(f.expr, (Read, Const)) for f in factors)
    )


def _leaves_most(guard: Expr, scope: Scope) -> bool:
    """Whether a condition holds in a slice of one dimension that is most of it."""
    box = box_of(guard, scope)
    if box is None or box.step != 1 or not usable(box):
        return False
    count, extent = known(box.count), known(box.dim.hi)
    return count is None or extent is None or 2 * count > extent


def _is_slice(body: Body, read: Read, scope: Scope) -> bool:
    """Whether a read is of elements that exist, those around its tensor included."""
    if scope.direct or any(reads_of(index) for index in read.indices):
        return False
    if read.tensor not in body.padded:
        return surely_inside(read)
    return not isinstance(scope.view(read, body.padded[read.tensor]), Refusal)

"""Operands that may be infinite at points that a condition excludes: an operand of zeros beside them makes NaN of these.

``sum over i, k of X[i] * (1 / Y[k]) where M[i, k] > 0`` as the product of ``where(M > 0, X[:, None], 0)`` and ``1 / Y`` is NaN where ``Y[k]`` is zero,
whatever ``M`` says of that ``k``. What may be infinite is therefore multiplied where the mask is, if the masked array has its dimensions; otherwise
it is zero where no point of the others counts (``M[:, k]`` all false). What the condition does not depend on at all stands outside, where the sum has no point.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from jaxte.algebra.product import Factor, may_spoil
from jaxte.lang.expr import Axis, Expr, conjunction
from jaxte.lang.identity import among
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.match.empty_sums import points_shadow, spoils
from jaxte.lower.rules.reduced_slices import reduced_call
from jaxte.lower.views.scope import Scope
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

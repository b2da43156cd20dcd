"""Sums of exponentials up to each position, or from each on: ``sum over s <= t of w[s] * exp(f[s] - c[t])``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.algebra.sums import added, signed_terms
from jaxte.lang.expr import Axis, Call, Expr, Reduce
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import depends_on, free_axes
from jaxte.sets.conditions import positive
from jaxte.sets.index_forms import nonnegative_forms

EXP = TABLE["exp"].op


@dataclass(frozen=True, slots=True)
class ExponentialSum:
    """The sum of ``weight * exp(moving + held)`` where ``guards`` hold, times what is ``outside``, where ``around`` holds; zero elsewhere.

    Attributes:
        bound: the axis up to which, or from which on, the sum is taken.
        moving: the part of the exponent that the sum is over.
        held: the other one.
        around: the conditions that the sum is not over.
    """

    bound: Axis
    weight: Expr
    moving: Expr
    held: Expr
    guards: tuple[Expr, ...]
    around: tuple[Expr, ...]
    outside: tuple[Factor, ...]


def exponential_sum(node: Reduce, axes: Sequence[Axis]) -> ExponentialSum | None:
    """What ``node``, at the points of ``axes``, is; None if it is no such sum."""
    if not node.is_sum or node.dtype not in ("float32", "float64") or len(node.axes) != 1:
        return None
    product = product_of(node.exprs[0], [node.where])
    every = (*product.guards, *(f.expr for f in product.factors if f.guard))
    guards = tuple(g for g in every if depends_on(g, node.axes))
    around = tuple(g for g in every if not depends_on(g, node.axes))
    t = _bound(guards, node.axes[0], axes)
    if t is None:
        return None
    factors = [f for f in product.factors if not f.guard]
    both = [f for f in factors if depends_on(f.expr, node.axes) and depends_on(f.expr, [t])]
    if len(both) != 1 or both[0].inverse:
        return None
    exponent = both[0].expr
    if not isinstance(exponent, Call) or exponent.op is not EXP or exponent.dtype != node.dtype:
        return None
    terms = signed_terms(exponent.args[0], negated=True)
    moving = [term for term in terms if depends_on(term[0], node.axes)]
    held = [term for term in terms if not depends_on(term[0], node.axes)]
    if not held or any(depends_on(term, [t]) for term, _ in moving):
        return None
    others = [f for f in factors if f is not both[0]]
    weight, exponents = multiplied([f for f in others if depends_on(f.expr, node.axes)]), added(moving)
    # what they keep in range is read at all positions of the others
    if any(
        depends_on(e, [a])
        for g in around
        for a in free_axes(g)
        for e in (weight, exponents, *guards)
        if a is not t
    ):
        return None
    return ExponentialSum(
        t,
        weight,
        exponents,
        added(held),
        guards,
        around,
        tuple(f for f in others if not depends_on(f.expr, node.axes)),
    )


def _bound(guards: Sequence[Expr], s: Axis, axes: Sequence[Axis]) -> Axis | None:
    """The axis that bounds ``s`` from one side, by one of ``guards``; the others are about ``s`` without it."""
    tied = [(g, a) for g in guards for a in axes if depends_on(g, [s]) and depends_on(g, [a])]
    bounds = [(g, a) for g, a in tied if _is_bound(g, s, a)]
    if len(bounds) != 1:
        return None
    ((_, t),) = bounds
    return t if sum(a is t for _, a in tied) == 1 else None


def _is_bound(guard: Expr, s: Axis, t: Axis) -> bool:
    """Whether ``guard`` says ``s <= t + c``, ``s >= t + c`` or the same of ``-t``."""
    forms = nonnegative_forms(positive(guard))
    return len(forms) == 1 and abs(forms[0].coefficient(s)) == abs(forms[0].coefficient(t)) == 1

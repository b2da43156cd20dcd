"""All rewrites of bodies that are about to be lowered, in the order in which they are asked. ``BODIES`` see a whole body once, ``ROOTS`` each node as it is evaluated.

The smallest stands here: powers with an exponent in quarters are square roots, which are several times as fast as a general power.
``a ** 0.75 == sqrt(a) * sqrt(sqrt(a))`` for every ``a`` that has such a power, and both are NaN where there is none. Whole
exponents stay as they are: XLA multiplies them out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jaxte.algebra.signs import with_even_functions
from jaxte.algebra.sums import signed_terms
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Const, Expr
from jaxte.lang.functions import rsqrt, sqrt
from jaxte.lang.operators import POWER
from jaxte.lang.rules import Rule, verify_expr
from jaxte.lang.walk import reductions
from jaxte.lower.cost.policy import Policy
from jaxte.lower.rewrites.disjoint_terms import with_residues_apart, without_disjoint_sums
from jaxte.lower.rewrites.hoist import with_factors_outside, with_narrow_factors_first
from jaxte.lower.rewrites.merge_sums import with_shared_calls
from jaxte.lower.rewrites.short_axes import at_unit_axes, short_axes_apart
from jaxte.lower.rewrites.stack_slices import with_rows_apart, with_stacked_terms
from jaxte.lower.views.scope import Scope


@dataclass(frozen=True)
class Place:
    """Where a rewrite is asked.

    Attributes:
        axes: those of the tensor whose body it is.
        scope: what its axes stand for.
        policy: how forms are chosen, and which rewrites are not wanted.
        in_tiles: whether the tensor is one block of a larger one.
        fired: the names of the rewrites that changed something.
    """

    axes: tuple[Axis, ...]
    scope: Scope
    policy: Policy
    in_tiles: bool = False
    fired: list[str] = field(default_factory=list)

    @property
    def without(self) -> frozenset[str]:
        return self.policy.without

    def verify(self, rule: str, before: Expr, after: Expr) -> None:
        if self.policy.debug:
            verify_expr(rule, before, after, self.axes)


@dataclass(frozen=True)
class Rewrite(Rule[Expr, Place]):
    """A rule from an expression to another one with the same value.

    Attributes:
        in_tiles: whether it applies to blocks of larger tensors too.
    """

    in_tiles: bool = True

    def is_for(self, place: Place) -> bool:
        return self.in_tiles or not place.in_tiles


_LARGEST = 3  # beyond it, as many products are rounded as a power is worth


def root_power(node: Expr) -> Expr | None:
    """``node`` by square roots, if it is such a power of real numbers."""
    match node:
        case Call(op, (base, Const(float() as exponent))) if op is POWER and not base.weak:
            pass
        case _:
            return None
    quarters = exponent * 4
    if not dtypes.is_float(node.dtype) or base.dtype != node.dtype or abs(exponent) > _LARGEST:
        return None
    if quarters != int(quarters) or exponent == int(exponent):
        return None
    return _power(base, int(abs(quarters)), exponent < 0)


def _power(base: Expr, quarters: int, inverse: bool) -> Expr:
    """``base ** (quarters / 4)``, or one over it."""
    root = sqrt(base)
    factors = {1: rsqrt(root) if inverse else sqrt(root), 2: rsqrt(base) if inverse else root}
    found = [factors[part] for part in (1, 2) if quarters & part]
    whole = quarters // 4
    result = found[0] if len(found) == 1 else found[1] * found[0]
    for _ in range(whole):
        result = result / base if inverse else result * base
    return result


def _of_sums(rule: Callable[[Expr], Expr]) -> Callable[[Expr, Place], Expr]:
    """``rule`` for bodies in which sums of several terms are reduced; the others are not walked."""

    def apply(body: Expr, place: Place) -> Expr:
        several = any(signed_terms(n.exprs[0])[1:] for n in reductions(body))
        return rule(body) if several else body

    return apply


def _root(node: Expr, place: Place) -> Expr:
    found = root_power(node)
    return node if found is None else found


# Where zeros are put around what a body reads is decided between these and those after them.
BEFORE_PADDING = (
    Rewrite(
        "residues apart",
        lambda body, at: with_residues_apart(body, at.axes, at.scope),
        "terms at all residues of an axis are put side by side, not spread out and added",
        in_tiles=False,
    ),
    Rewrite(
        "unit axes",
        lambda body, at: at_unit_axes(body, at.axes),
        "arrays with axes of extent 1 are taken as they are, without an index and a new axis in its place",
    ),
    Rewrite(
        "short axes apart",
        lambda body, at: short_axes_apart(body, at.axes),
        "an axis of a few positions that is read in several orders is transposed otherwise",
        in_tiles=False,
    ),
    Rewrite(
        "stacked terms",
        _of_sums(with_stacked_terms),
        "products with the slices of one tensor are one product",
        in_tiles=False,
    ),
    Rewrite(
        "rows of tables apart",
        lambda body, at: with_rows_apart(body, at.axes, at.policy.rates),
        "a product with each of a few matrices takes less than gathering the one of each row",
        in_tiles=False,
    ),
    Rewrite(
        "factors outside",
        lambda body, at: with_factors_outside(body),
        "weights of gathered rows are multiplied once, and a choice that no reduced axis decides leaves a product behind",
    ),
)
AFTER_PADDING = (
    Rewrite(
        "even functions",
        lambda body, at: with_even_functions(body, with_slopes=False),
        "squares of a difference and of its negative are the same, and so is what is computed from them",
    ),
    Rewrite(
        "disjoint terms",
        lambda body, at: without_disjoint_sums(body, at.axes, at.scope),
        "terms at different positions of an axis are put side by side, not padded and added",
    ),
    Rewrite(
        "shared calls",
        lambda body, at: with_shared_calls(body),
        "an expensive factor of several sums is computed once, and products with one matrix are one product",
    ),
    Rewrite(
        "narrow factors first",
        lambda body, at: with_narrow_factors_first(body, at.axes),
        "what does not depend on all axes is multiplied before it meets what does",
    ),
)
ROOTS = Rewrite(
    "roots for powers", _root, "powers in quarters are square roots, several times as fast as a power"
)

BODIES = (*BEFORE_PADDING, *AFTER_PADDING)
REWRITES = (*BODIES, ROOTS)

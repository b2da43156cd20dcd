"""Sums over many shifts in which each position counts in a part of the output only, as the sums of an adjoint do.

``dX[i] = sum over k of (f(X[i], H[i - k]) where k <= i < n + k)`` written out is a sum of as many slices as there are positions.
Zeros around each of them would make the slices pads of computed values, in which XLA tests every element, and which it
keeps in memory from about fifteen on: ten times slower than one loop. Where all that is read out of range has zeros around it
anyway, each term is computed for the whole output and chosen by ``jnp.where``, and all of them are one loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.product import Factor, may_be_infinite
from jaxte.lang.expr import Axis, Const, Expr, Read
from jaxte.lang.walk import reads_of
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.spec import Refusal
from jaxte.lower.views.condition_box import box_of, usable
from jaxte.lower.views.overlaps import overlaps
from jaxte.lower.views.scope import Scope
from jaxte.sets.intervals import known, surely_inside

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

"""Which sums have geometric weights: ``y[t] = sum over s <= t of r ** (t - s) * x[s]``, and from the other end.

Weights are powers and exponentials of a multiple of the distance (averages, discounted returns, decays that are learned), with any conditions that say
``s <= t`` or ``s >= t``, so that adjoints have the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, Product, product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Const, Expr, Reduce, as_expr, call, cast
from jaxte.lang.graphs import among
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, POWER, SUBTRACT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import depends_on, free_axes, substitute
from jaxte.planning.orders.contraction import EXACT
from jaxte.sets.affine import linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known
from jaxte.sets.isl_text import is_decidable

_EXP = TABLE["exp"].op


@dataclass(frozen=True, slots=True)
class GeometricSum:
    """The sum over ``s`` up to ``t`` (from ``t`` on, if ``backwards``) of ``weight``, geometric in the distance, times ``rest``; ``outside`` of it factors."""

    t: Axis
    s: Axis
    backwards: bool
    weight: Expr
    rest: tuple[Factor, ...]
    outside: tuple[Factor, ...]

    def over(self, distance: Expr) -> Expr:
        """By what weights change over ``distance``."""
        assert isinstance(self.weight, Call)
        base, exponent = self.weight.args if self.weight.op is POWER else (None, self.weight.args[0])
        slope = _slope(exponent, *((self.s, self.t) if self.backwards else (self.t, self.s)))
        assert slope is not None
        steps = slope if distance is ONE else _times(slope, cast(distance, "int32"))
        if base is None:
            return call(_EXP, steps)
        return base if steps is ONE else call(POWER, base, steps)

    @property
    def first(self) -> Expr:
        """The weight at no distance."""
        found = substitute(self.weight, {self.s: self.t})
        assert isinstance(found, Call)
        return ONE if _vanishes(found.args[-1]) else found


def _vanishes(exponent: Expr) -> bool:
    """Whether ``exponent`` is zero for all rates that are finite."""
    match exponent:
        case Const(value):
            return value == 0
        case Call(op, args) if op is MULTIPLY:
            return any(map(_vanishes, args))
        case Call(op, (inner, *_)) if op in (NEGATIVE, DIVIDE) or op.name == "cast":
            return _vanishes(inner)
    return False


def geometric_sum(node: Reduce, axes: Sequence[Axis], least: int) -> GeometricSum | None:
    """What ``node``, at the points of ``axes``, is over ``least`` positions or more; None if it is no such sum."""
    if not node.is_sum or node.dtype not in EXACT or len(node.axes) != 1:
        return None
    (s,) = node.axes
    if s.lo is not ZERO or (known(s.hi) or 0) < least:
        return None
    product = product_of(node.exprs[0], [node.where])
    found = _direction(product, s, axes)
    if found is None or any(f.guard for f in product.factors):
        return None
    t, backwards = found
    both = [f for f in product.factors if depends_on(f.expr, [s]) and depends_on(f.expr, [t])]
    if len(both) != 1 or both[0].inverse or not _is_geometric(both[0].expr, t, s):
        return None
    others = [f for f in product.factors if f is not both[0]]
    rest = tuple(f for f in others if not depends_on(f.expr, [t]))
    return GeometricSum(
        t, s, backwards, both[0].expr, rest, tuple(f for f in others if depends_on(f.expr, [t]))
    )


def _direction(product: Product, s: Axis, axes: Sequence[Axis]) -> tuple[Axis, bool] | None:
    """The axis that bounds ``s``, and whether from below: whatever conditions say so."""
    if not product.guards or not all(map(is_decidable, product.guards)):
        return None
    bounding = {a for c in product.guards for a in free_axes(c) if a is not s}
    if len(bounding) != 1:
        return None
    (t,) = bounding
    if not among(t, axes) or t.lo is not ZERO or t.hi is not s.hi:
        return None
    points = IntegerSet((t, s), product.guards)
    for backwards, bound in ((False, s <= t), (True, s >= t)):
        whole = IntegerSet((t, s), [bound])
        if points.implies(bound) and all(map(whole.implies, product.guards)):
            return t, backwards
    return None


def _is_geometric(weight: Expr, t: Axis, s: Axis) -> bool:
    """Whether ``weight`` is a power or an exponential of a multiple of ``t - s``, and of something that neither is in."""
    if not isinstance(weight, Call) or weight.op not in (POWER, _EXP) or not dtypes.is_inexact(weight.dtype):
        return False
    if weight.op is POWER and depends_on(weight.args[0], [t, s]):
        return False
    return _slope(weight.args[-1], t, s) is not None


def _slope(exponent: Expr, t: Axis, s: Axis) -> Expr | None:
    """What ``exponent`` grows by with ``t``, which is what it falls by with ``s``; None where that is not so everywhere."""
    if not depends_on(exponent, [t, s]):
        return ZERO
    if is_index(exponent):
        form = linear(exponent)
        rest = form.without(t).without(s)
        plain = not any(depends_on(atom, [t, s]) for atom in rest.terms)
        step = form.coefficient(t)
        return as_expr(step) if plain and step == -form.coefficient(s) else None
    if not isinstance(exponent, Call):
        return None
    op, args = exponent.op, exponent.args
    if op.name == "cast" or op is NEGATIVE:
        own = _slope(args[0], t, s)
        return own if own is None or op is not NEGATIVE else -own
    if op in (ADD, SUBTRACT):
        left, right = (_slope(a, t, s) for a in args)
        return None if left is None or right is None else left + right if op is ADD else left - right
    if op in (MULTIPLY, DIVIDE):
        moving = [a for a in args if depends_on(a, [t, s])]
        own = (
            _slope(moving[0], t, s)
            if len(moving) == 1 and not (op is DIVIDE and moving[0] is args[1])
            else None
        )
        if own is None:
            return None
        other = args[1] if moving[0] is args[0] else args[0]
        return _times(own, other) if op is MULTIPLY else call(op, own, other)
    return None


def _times(a: Expr, b: Expr) -> Expr:
    return b if a is ONE else a * b

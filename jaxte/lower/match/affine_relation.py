"""The linear equality that ties an output axis to the indices of two operands.

A spatial dimension of a convolution holds the points ``(t, x, k)`` of boxes with ``alpha * x == gamma * t + beta * k + c``,
where ``t`` is the output axis, ``x`` the index of one operand and ``k`` that of the other. A sum over ``z`` with
``x = f(t, z)`` and ``k = g(t, z)``, both linear in ``z``, is such a dimension if

1. ``z`` is determined by ``(t, x, k)``, so that every point is reached once: ``f`` or ``g`` depends on it;
2. the combination of ``f`` and ``g`` without ``z`` is a line in ``t`` (``//`` and ``%`` may bend it; only its slope matters);
3. the set of points reached is that of the equality: isl compares the two sets.

The third step makes the first guesses harmless: whatever they are, what is recognised is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, inf

from jaxte.lang.expr import Axis, Call, Const, Expr, Var, as_expr
from jaxte.lang.identity import identical
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, postorder, substitute
from jaxte.lower.code.spec import Refusal
from jaxte.lower.match.index_terms import Form
from jaxte.sets.affine import Linear, from_linear, linear, normal
from jaxte.sets.conditions import tidy
from jaxte.sets.domain import IntegerSet, evaluate_index


@dataclass(frozen=True, slots=True)
class Extents:
    """A half-open range."""

    lo: Expr
    hi: Expr

    @property
    def size(self) -> Expr:
        return normal(self.hi - self.lo)


@dataclass(frozen=True, slots=True)
class Relation:
    """``alpha * (x - x_range.lo) == gamma * t + beta * (k - k_range.lo) + c``, with ``alpha`` positive."""

    alpha: int
    gamma: int
    beta: int
    c: Expr
    x_range: Extents
    k_range: Extents

    def equality(self, t: Expr, x: Expr, k: Expr) -> Expr:
        return (
            self.alpha * (x - self.x_range.lo) == self.gamma * t + self.beta * (k - self.k_range.lo) + self.c
        )


def relate(t: Axis, z: Axis, x: Form, k: Form, guards: Sequence[Expr]) -> Relation | Refusal:
    """The relation of a spatial dimension whose operands are read at ``x`` and ``k``."""
    slopes = x.terms.coefficient(z), k.terms.coefficient(z)
    if 0 in slopes or any(depends_on(from_linear(f.terms.without(z)), (z,)) for f in (x, k)):
        return Refusal(f"{shown(x, k)} are no line in {z.name}")
    # Dimensions of the same kind (rows and columns) are decided once, on stand-ins for their axes.
    table = {t: stand_in("t", t.lo, t.hi), z: stand_in("z", z.lo, z.hi)}
    same_x, same_k = (Form(linear(substitute(from_linear(f.terms), table)), (), f.lo, f.hi) for f in (x, k))
    same_guards = tuple(substitute(guard, table) for guard in guards)
    found = _relate(
        table[t],
        table[z],
        from_linear(same_x.terms),
        x.lo,
        x.hi,
        from_linear(same_k.terms),
        k.lo,
        k.hi,
        same_guards,
    )
    return found or Refusal(f"{shown(x, k)} under their conditions are not the points of a convolution")


def shown(*forms: Form) -> str:
    return " and ".join(text(from_linear(form.terms)) for form in forms)


@lru_cache(maxsize=1024)
def stand_in(name: str, lo: Expr, hi: Expr) -> Axis:
    return Axis(name, lo, hi)


@lru_cache(maxsize=1024)
def _relate(
    t: Axis,
    z: Axis,
    x_index: Expr,
    x_lo: Expr | None,
    x_hi: Expr | None,
    k_index: Expr,
    k_lo: Expr | None,
    k_hi: Expr | None,
    guards: tuple[Expr, ...],
) -> Relation | None:
    x, k = Form(linear(x_index), (), x_lo, x_hi), Form(linear(k_index), (), k_lo, k_hi)
    slopes = x.terms.coefficient(z), k.terms.coefficient(z)
    divisor = gcd(*slopes)
    a, b = slopes[1] // divisor, -slopes[0] // divisor
    rest = linear(from_linear(x.terms.without(z) * a + k.terms.without(z) * b))
    inclination = slope(rest, t)
    points = IntegerSet((t, z), guards)
    c = intercept(rest, inclination, t, points) if inclination else None
    if c is None:
        return None
    q = inclination.denominator
    coefficients = lowest_terms(a * q, -b * q, inclination.numerator, c)
    natural = natural_range(x), natural_range(k)
    if (found := _exact(t, z, x, k, guards, coefficients, natural)) is not None:
        return found
    hulls = hull(points, x.terms), hull(points, k.terms)
    return None if identical(hulls, natural) else _exact(t, z, x, k, guards, coefficients, hulls)


def _exact(
    t: Axis,
    z: Axis,
    x: Form,
    k: Form,
    guards: Sequence[Expr],
    coefficients: tuple[int, int, int, Expr],
    ranges: tuple[Extents | None, Extents | None],
) -> Relation | None:
    """The relation on boxes with these ``ranges``, if its points are those of the sum."""
    x_range, k_range = ranges
    if x_range is None or k_range is None:
        return None
    relation = relation_on(*coefficients, x_range, k_range)
    return relation if same_points(t, z, x, k, guards, relation) else None


def slope(form: Linear, t: Axis) -> Fraction:
    """How fast ``form`` grows with ``t`` in the long run, floors and remainders smoothed out."""
    total = Fraction(0)
    for atom, coefficient in form.terms.items():
        if atom is t:
            total += coefficient
        elif isinstance(atom, Call) and atom.op.name == "floor_divide":
            divisor = int(atom.args[1])
            total += Fraction(coefficient, divisor) * slope(linear(atom.args[0]), t)
    return total


def intercept(rest: Linear, inclination: Fraction, t: Axis, points: IntegerSet) -> Expr | None:
    """``c`` in ``q * rest == p * t + c``, read off the form or, where floors bend it, at one of the points."""
    p, q = inclination.numerator, inclination.denominator
    if all(atom is t or isinstance(atom, Var) for atom in rest.terms):
        return from_linear(rest.without(t) * q)
    if any(isinstance(node, Var) for node in postorder(from_linear(rest))):
        return None
    point = points.sample()
    if point is None:
        return None
    return as_expr(q * evaluate_index(from_linear(rest), point) - p * point[t])


def lowest_terms(alpha: int, beta: int, gamma: int, c: Expr) -> tuple[int, int, int, Expr]:
    """``alpha * x == gamma * t + beta * k + c`` in lowest terms and with ``alpha`` positive."""
    divisor = gcd(alpha, beta, gamma)
    form = linear(c)
    if form.constant % divisor or any(v % divisor for v in form.terms.values()):
        divisor = 1
    if alpha < 0:
        divisor = -divisor
    reduced = Linear({a: v // divisor for a, v in form.terms.items()}, form.constant // divisor)
    return alpha // divisor, beta // divisor, gamma // divisor, from_linear(reduced)


def relation_on(alpha: int, beta: int, gamma: int, c: Expr, x: Extents, k: Extents) -> Relation:
    shift = normal(c + beta * k.lo - alpha * x.lo)
    return Relation(alpha, gamma, beta, shift, x, k)


def natural_range(form: Form) -> Extents | None:
    return None if form.lo is None or form.hi is None else Extents(form.lo, form.hi)


def hull(points: IntegerSet, form: Linear) -> Extents | None:
    """The least and greatest value of ``form`` over the points."""
    if points.is_empty():
        return None
    low, high = points.maximum(from_linear(form * -1)), points.maximum(from_linear(form))
    if low is None or high is None:
        return None
    return Extents(normal(-low), normal(high + 1))


def same_points(t: Axis, z: Axis, x: Form, k: Form, guards: Sequence[Expr], relation: Relation) -> bool:
    """Whether the sum reaches exactly the points of the relation."""
    at_x = Axis("x", relation.x_range.lo, relation.x_range.hi)
    at_k = Axis("k", relation.k_range.lo, relation.k_range.hi)
    variables = (t, at_x, at_k)
    slopes = [_slope_of_line(f, z) for f in (x, k)]
    position, index = (x, at_x) if slopes[0] <= slopes[1] else (k, at_k)
    inverse = solved(position, z, index)
    reached = [
        at_x == normal(substitute(from_linear(x.terms), {z: inverse})),
        at_k == normal(substitute(from_linear(k.terms), {z: inverse})),
        z.lo <= inverse,
        inverse < z.hi,
        *(tidy(substitute(guard, {z: inverse})) for guard in guards),
    ]
    wanted = relation.equality(t, at_x, at_k)
    return IntegerSet(variables, reached).is_equal(IntegerSet(variables, [wanted]))


def _slope_of_line(form: Form, z: Axis) -> float:
    """How fast a form that is a line in ``z`` moves; infinite where it is none, so that it gives no ``z``."""
    slope = form.terms.coefficient(z)
    return abs(slope) if slope and not depends_on(from_linear(form.terms.without(z)), (z,)) else inf


def solved(form: Form, z: Axis, value: Expr) -> Expr:
    """``z`` from the value of a form that is linear in it (rounded down where no ``z`` gives that value)."""
    factor = form.terms.coefficient(z)
    rest = value - from_linear(form.terms.without(z))
    rest = rest if factor > 0 else -rest
    return normal(rest) if abs(factor) == 1 else normal(rest) // abs(factor)


def constant(expr: Expr) -> int | None:
    """The number that ``expr`` is, or None if it is made of sizes."""
    return int(expr) if isinstance(expr, Const) else None

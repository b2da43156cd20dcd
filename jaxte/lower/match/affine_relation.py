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

from jaxte.lang.budget import remembered
from jaxte.lang.divisions import Quotient, division
from jaxte.lang.expr import Axis, Expr, Var, as_expr
from jaxte.lang.graphs import identical
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, free_axes, postorder, substitute
from jaxte.lower.code.spec import Refusal
from jaxte.lower.match.index_terms import Form
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.conditions import tidy
from jaxte.sets.domain import IntegerSet
from jaxte.sets.linear import Linear
from jaxte.sets.tabulate import evaluate_index


@dataclass(frozen=True, slots=True)
class Extents:
    """A half-open range."""

    lo: Expr
    hi: Expr

    @property
    def size(self) -> Expr:
        return _length(self.lo, self.hi)


@lru_cache(maxsize=4096)  # each form of a convolution asks for its extents again
def _length(lo: Expr, hi: Expr) -> Expr:
    return normal(hi - lo)


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
    found = _relate(*on_stand_ins((t, z), x, k, guards))
    return found or Refusal(f"{shown(x, k)} under their conditions are not the points of a convolution")


def shown(*forms: Form) -> str:
    return " and ".join(text(from_linear(form.terms)) for form in forms)


@lru_cache(maxsize=1024)
def stand_in(name: str, lo: Expr, hi: Expr) -> Axis:
    return Axis(name, lo, hi)


Reads = tuple[tuple[Axis, ...], Expr, Expr, tuple[Expr | None, ...], tuple[Expr, ...]]
"""The output axis and the reduced one, the two indices, the ends of their ranges, and the guards."""


def on_stand_ins(axes: Sequence[Axis], x: Form, k: Form, guards: Sequence[Expr]) -> Reads:
    """What is read at ``x`` and ``k``, over stand-ins for ``axes``: dimensions of the same kind (rows and columns) are decided once."""
    table = {axis: stand_in(name, axis.lo, axis.hi) for name, axis in zip("tz", axes, strict=False)}
    x_index, k_index = (substitute(from_linear(f.terms), table) for f in (x, k))
    same_guards = tuple(substitute(guard, table) for guard in guards)
    return tuple(table.values()), x_index, k_index, (x.lo, x.hi, k.lo, k.hi), same_guards


@remembered(1024)
def _relate(
    axes: tuple[Axis, ...],
    x_index: Expr,
    k_index: Expr,
    ends: Sequence[Expr | None],
    guards: tuple[Expr, ...],
) -> Relation | None:
    t, z = axes
    x, k = Form(linear(x_index), (), *ends[:2]), Form(linear(k_index), (), *ends[2:])
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
    return exact_relation(points, guards, x, k, lowest_terms(a * q, -b * q, inclination.numerator, c))


def exact_relation(
    points: IntegerSet, guards: Sequence[Expr], x: Form, k: Form, coefficients: tuple[int, int, int, Expr]
) -> Relation | None:
    """The relation with these ``coefficients`` whose points are those of the sum: of all that is there to read, or of what is read."""
    alpha, beta, gamma, c = coefficients
    tried: tuple[Extents | None, ...] = ()
    for ends in (natural_range, lambda form: hull(points, form.terms)):
        x_range, k_range = ranges = ends(x), ends(k)
        if x_range is None or k_range is None or identical(ranges, tried):
            continue
        shift = normal(c + beta * k_range.lo - alpha * x_range.lo)
        relation, tried = Relation(alpha, gamma, beta, shift, x_range, k_range), ranges
        if _same_points(points, guards, x, k, relation):
            return relation
    return None


def slope(form: Linear, t: Axis) -> Fraction:
    """How fast ``form`` grows with ``t`` in the long run, floors and remainders smoothed out."""
    total = Fraction(0)
    for atom, coefficient in form.terms.items():
        if atom is t:
            total += coefficient
            continue
        match division(atom):
            case Quotient(number, int() as divisor):
                total += Fraction(coefficient, divisor) * slope(linear(number), t)
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
    return alpha // divisor, beta // divisor, gamma // divisor, from_linear(form // divisor)


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


def _same_points(points: IntegerSet, guards: Sequence[Expr], x: Form, k: Form, relation: Relation) -> bool:
    """Whether the sum reaches exactly the points of the relation."""
    t, *reduced = (a for a in points.variables if isinstance(a, Axis))
    at_x = Axis("x", relation.x_range.lo, relation.x_range.hi)
    at_k = Axis("k", relation.k_range.lo, relation.k_range.hi)
    variables = (t, at_x, at_k)
    inverse: dict[Expr, Expr] = {}
    for z in reduced:
        steep = _slope_of_line(x, z) > _slope_of_line(k, z)
        inverse[z] = solved(k, z, at_k) if steep else solved(x, z, at_x)
    reached = [
        at_x == normal(substitute(from_linear(x.terms), inverse)),
        at_k == normal(substitute(from_linear(k.terms), inverse)),
        *(test for z in reduced for test in (z.lo <= inverse[z], inverse[z] < z.hi)),
        *(tidy(substitute(guard, inverse)) for guard in guards),
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


def is_implied(guard: Expr) -> bool:
    """Whether a condition that ties several axes holds on all of their ranges."""
    axes = tuple(free_axes(guard))
    return len(axes) > 2 and IntegerSet(axes).implies(guard)

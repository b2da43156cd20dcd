"""Spatial dimensions whose equality is not written in the indices, because floors and remainders bend them.

Where one tap at most reaches each output, no reduced axis is left.

The adjoint of a convolution whose stride is at least its kernel reads ``H[t // 3]`` and ``W[t % 3]``: the points
``(t, x(t), k(t))`` of ``3 * x == t - k``. The equality is not written in the indices; it is the only linear relation between
``x``, ``k``, ``t`` and 1 that holds at all of the points, found by elimination and confirmed, as always, by isl.

A transposed convolution as people write it down reads ``X[(t + z) // 2]`` and ``W[z]`` where ``(t + z) % 2 == 0``. There the tap that
is read, ``z``, is still an axis; the relation, ``2 * x == t + k``, is found in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import lcm

from jaxte.lang.expr import Axis, Call, Const, Expr, Var, as_expr
from jaxte.lang.walk import postorder, substitute
from jaxte.lower.code.spec import Refusal
from jaxte.lower.match.affine_relation import (
    Relation,
    hull,
    lowest_terms,
    natural_range,
    relation_on,
    same_points,
    shown,
    stand_in,
)
from jaxte.lower.match.index_terms import Form
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.domain import IntegerSet, evaluate_index

_MOST_SAMPLES = 512


def relate_single(t: Axis, x: Form, k: Form, guards: Sequence[Expr]) -> Relation | Refusal:
    """The relation of a spatial dimension whose operands are read at ``x(t)`` and ``k(t)``."""
    refusal = Refusal(f"{shown(x, k)} are not the points of a convolution")
    if not (is_bent(x) or is_bent(k)) or not isinstance(t.extent, Const):
        return refusal
    table = {t: stand_in("t", t.lo, t.hi)}
    indices = [substitute(from_linear(f.terms), table) for f in (x, k)]
    if any(isinstance(node, Var) for node in postorder(*indices, *guards)):
        return refusal
    same_guards = tuple(substitute(guard, table) for guard in guards)
    return _relate(table[t], indices[0], x.lo, x.hi, indices[1], k.lo, k.hi, same_guards) or refusal


def relate_bent(t: Axis, z: Axis, x: Form, k: Form, guards: Sequence[Expr]) -> Relation | Refusal:
    """The relation of a spatial dimension whose operands are read at ``x(t, z)`` and ``k(t, z)``, one of them bent."""
    refusal = Refusal(f"{shown(x, k)} under their conditions are not the points of a convolution")
    straight = next((f for f in (k, x) if not is_bent(f) and abs(f.terms.coefficient(z)) == 1), None)
    if straight is None or not (is_bent(x) or is_bent(k)):
        return refusal
    table = {t: stand_in("t", t.lo, t.hi), z: stand_in("z", z.lo, z.hi)}
    indices = [substitute(from_linear(f.terms), table) for f in (x, k)]
    same_guards = tuple(substitute(guard, table) for guard in guards)
    if any(isinstance(node, Var) for node in postorder(*indices, *same_guards)):
        return refusal
    ranges = (x.lo, x.hi, k.lo, k.hi)
    return _relate_taps(table[t], table[z], indices[0], indices[1], ranges, same_guards) or refusal


@lru_cache(maxsize=1024)
def _relate_taps(
    t: Axis,
    z: Axis,
    x_index: Expr,
    k_index: Expr,
    ranges: tuple[Expr | None, ...],
    guards: tuple[Expr, ...],
) -> Relation | None:
    points = IntegerSet((t, z), guards)
    rows = []
    for n, m in islice(points.points(), _MOST_SAMPLES):
        at: dict[Expr, int] = {t: n, z: m}
        rows.append([evaluate_index(x_index, at), evaluate_index(k_index, at), n, 1])
    x = Form(linear(x_index), (), *ranges[:2])
    k = Form(linear(k_index), (), *ranges[2:])
    found = _coefficients(rows)
    if found is None:
        return None
    for both in ((natural_range(x), natural_range(k)), (hull(points, x.terms), hull(points, k.terms))):
        if both[0] is None or both[1] is None:
            continue
        relation = relation_on(*found, both[0], both[1])
        if same_points(t, z, x, k, guards, relation):
            return relation
    return None


def _coefficients(rows: Sequence[Sequence[int]]) -> tuple[int, int, int, Expr] | None:
    """``alpha, beta, gamma, c`` of the only relation between ``x``, ``k`` and ``t`` at the points ``(x, k, t, 1)``."""
    solution = _only_relation(rows)
    if solution is None or 0 in solution[:3]:
        return None
    a, b, p, c = solution
    return lowest_terms(a, -b, -p, as_expr(-c))


def is_bent(form: Form) -> bool:
    """Whether floors or remainders are in it."""
    return any(isinstance(atom, Call) for atom in form.terms.terms)


def is_digit(form: Form) -> bool:
    """Whether it is one floor or remainder by itself, which takes an axis apart without any tap."""
    return len(form.terms.terms) == 1


@lru_cache(maxsize=1024)
def _relate(
    t: Axis,
    x_index: Expr,
    x_lo: Expr | None,
    x_hi: Expr | None,
    k_index: Expr,
    k_lo: Expr | None,
    k_hi: Expr | None,
    guards: tuple[Expr, ...],
) -> Relation | None:
    points = IntegerSet((t,), guards)
    rows = [
        [evaluate_index(x_index, {t: n}), evaluate_index(k_index, {t: n}), n, 1]
        for (n,) in islice(points.points(), _MOST_SAMPLES)
    ]
    coefficients = _coefficients(rows)
    if coefficients is None:
        return None
    x = Form(linear(x_index), (), x_lo, x_hi)
    k = Form(linear(k_index), (), k_lo, k_hi)
    for ranges in ((natural_range(x), natural_range(k)), (hull(points, x.terms), hull(points, k.terms))):
        if ranges[0] is None or ranges[1] is None:
            continue
        relation = relation_on(*coefficients, ranges[0], ranges[1])
        if _same_points(t, x_index, k_index, guards, relation):
            return relation
    return None


def _only_relation(rows: Sequence[Sequence[int]]) -> list[int] | None:
    """The integer vector orthogonal to all ``rows`` of four, if it is unique up to a factor."""
    basis: list[tuple[int, list[Fraction]]] = []  # pivot column and row, reduced
    for row in rows:
        current = [Fraction(v) for v in row]
        for pivot, known in basis:
            current = [v - current[pivot] * w for v, w in zip(current, known, strict=True)]
        lead = next((n for n, v in enumerate(current) if v), None)
        if lead is None:
            continue
        current = [v / current[lead] for v in current]
        basis = [
            (pivot, [v - known[lead] * w for v, w in zip(known, current, strict=True)])
            for pivot, known in basis
        ]
        basis.append((lead, current))
        if len(basis) > 3:
            return None
    if len(basis) != 3:
        return None
    (free,) = set(range(4)) - {pivot for pivot, _ in basis}
    vector = [Fraction(0)] * 4
    vector[free] = Fraction(1)
    for pivot, known in basis:
        vector[pivot] = -known[free]
    scale = lcm(*(v.denominator for v in vector))
    return [int(v * scale) for v in vector]


def _same_points(t: Axis, x_index: Expr, k_index: Expr, guards: Sequence[Expr], relation: Relation) -> bool:
    at_x = Axis("x", relation.x_range.lo, relation.x_range.hi)
    at_k = Axis("k", relation.k_range.lo, relation.k_range.hi)
    variables = (t, at_x, at_k)
    reached = [at_x == x_index, at_k == k_index, *guards]
    return IntegerSet(variables, reached).is_equal(IntegerSet(variables, [relation.equality(t, at_x, at_k)]))

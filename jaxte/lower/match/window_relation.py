"""The inequality that ties an output axis to the positions in its window.

A windowed dimension holds the points ``(t, x)`` with ``alpha * x == gamma * t + d * k + c`` for one ``k`` in ``[0, size)``: a
window of ``size`` positions, ``d`` apart, that moves by ``gamma`` over an array whose elements are ``alpha`` apart. A
reduction over ``z`` with ``x = f(t, z)`` is such a dimension if ``f`` is linear in ``z`` (each point is met once) and the set
of points that it meets is that of the window. As for convolutions, the coefficients are guesses from the slope of
``f``, or of a condition that ties ``z`` to ``t`` where ``f`` does not, and isl compares the two sets.

Spatial dimensions whose equality is not written in the indices, because floors and remainders stand in them.

Where one tap at most reaches each output, no reduced axis is left.

The adjoint of a convolution whose stride is at least its kernel reads ``H[t // 3]`` and ``W[t % 3]``: the points
``(t, x(t), k(t))`` of ``3 * x == t - k``. The equality is not written in the indices; it is the only linear relation between
``x``, ``k``, ``t`` and 1 that holds at all of the points, found by elimination and confirmed, as always, by isl.

A transposed convolution as people write it down reads ``X[(t + z) // 2]`` and ``W[z]`` where ``(t + z) % 2 == 0``. There the tap that
is read, ``z``, is still an axis; the relation, ``2 * x == t + k``, is found in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isqrt, lcm

import numpy as np

from jaxte.lang.budget import remembered
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Var, as_expr, conjunction
from jaxte.lang.graphs import among
from jaxte.lang.text import text
from jaxte.lang.walk import depends_on, postorder, substitute
from jaxte.lower.code.spec import Refusal
from jaxte.lower.match.affine_relation import (
    Extents,
    Relation,
    exact_relation,
    hull,
    lowest_terms,
    natural_range,
    on_stand_ins,
    shown,
    slope,
    solved,
    stand_in,
)
from jaxte.lower.match.index_terms import Form
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.conditions import positive
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.intervals import known
from jaxte.sets.linear import Linear
from jaxte.sets.tabulate import tabulated, values_at


@dataclass(frozen=True, slots=True)
class WindowRelation:
    """``alpha * (x - x_range.lo) == gamma * t + d * k + c`` for ``0 <= k < size``; ``alpha`` and ``d`` are positive."""

    alpha: int
    gamma: int
    d: int
    size: int
    c: Expr
    x_range: Extents


def relate_window(t: Axis, z: Axis, x: Form, guards: Sequence[Expr]) -> WindowRelation | Refusal:
    """The relation of a windowed dimension that is read at ``x``."""
    if not x.terms.coefficient(z) or depends_on(from_linear(x.terms.without(z)), (z,)):
        return Refusal(f"{shown(x)} is no line in {z.name}")
    table = {t: stand_in("t", t.lo, t.hi), z: stand_in("z", z.lo, z.hi)}
    index = substitute(from_linear(x.terms), table)
    same_guards = tuple(substitute(guard, table) for guard in guards)
    found = _relate(table[t], table[z], index, x.lo, x.hi, same_guards)
    where = f" where {text(conjunction(guards))}" if guards else ""
    return found or Refusal(
        f"the points {shown(x)}{where} are not those of a window that moves with {t.name}"
    )


@remembered(1024)
def _relate(
    t: Axis, z: Axis, index: Expr, lo: Expr | None, hi: Expr | None, guards: tuple[Expr, ...]
) -> WindowRelation | None:
    x = Form(linear(index), (), lo, hi)
    rest = x.terms.without(z)
    inclination = slope(rest, t)
    own = bool(inclination)
    if not own:
        inclination = _slope_of_guards(t, z, x, guards)
    if not inclination:
        return None
    points = IntegerSet((t, z), guards)
    alpha, gamma = inclination.denominator, inclination.numerator
    span = _span(x.terms * alpha - Linear({t: gamma}), z, points)
    if span is None:
        return None
    straight = all(atom is t or isinstance(atom, Var) for atom in rest.terms)
    step = alpha * abs(x.terms.coefficient(z))
    natural = natural_range(x)
    ranges = [natural] if natural is not None else []
    width = normal(span.hi - 1 - span.lo)
    if not isinstance(width, Const):
        return None
    for d in (step,) if straight else (1, step):
        if int(width) % d:
            continue
        size = int(width) // d + 1
        for extents in _with_hull(ranges, points, x):
            c = normal(span.lo - alpha * extents.lo)
            relation = WindowRelation(alpha, gamma, d, size, c, extents)
            if not own and _covers(relation):
                return None
            if _same_points(t, z, x, guards, relation):
                return relation
    return None


def _with_hull(ranges: Sequence[Extents], points: IntegerSet, x: Form) -> Iterator[Extents]:
    yield from ranges
    found = hull(points, x.terms)
    if found is not None and not among(found, ranges):
        yield found


def _covers(relation: WindowRelation) -> bool:
    """Whether a window is as wide as what it moves over: then it is a prefix, or the whole."""
    size = relation.x_range.size
    return not isinstance(size, Const) or relation.size >= int(size)


def _span(form: Linear, z: Axis, points: IntegerSet) -> Extents | None:
    """The values of ``form`` over the points: from the range of ``z`` where nothing else is in it."""
    factor, rest = form.coefficient(z), form.without(z)
    if all(isinstance(atom, Var) for atom in rest.terms):
        ends = [from_linear(linear(end) * factor + rest) for end in (z.lo, z.hi - 1)]
        low, high = ends if factor > 0 else reversed(ends)
        return Extents(normal(low), normal(high + 1))
    return hull(points, form)


def _slope_of_guards(t: Axis, z: Axis, x: Form, guards: Sequence[Expr]) -> Fraction:
    """How fast a bound of ``z`` moves with ``t``, times how fast ``x`` moves with ``z``."""
    for guard in guards:
        for form in nonnegative_forms(positive(guard)):
            if form.coefficient(z) and slope(form, t):
                return -slope(form, t) / form.coefficient(z) * x.terms.coefficient(z)
    return Fraction(0)


def _same_points(t: Axis, z: Axis, x: Form, guards: Sequence[Expr], relation: WindowRelation) -> bool:
    at = Axis("x", relation.x_range.lo, relation.x_range.hi)
    inverse = solved(x, z, at)
    reached = [
        at == substitute(from_linear(x.terms), {z: inverse}),
        z.lo <= inverse,
        inverse < z.hi,
        *(substitute(guard, {z: inverse}) for guard in guards),
    ]
    offset = normal(relation.alpha * (at - relation.x_range.lo) - relation.gamma * t - relation.c)
    wanted = [offset >= 0, offset <= relation.d * (relation.size - 1)]
    wanted.append(TRUE if relation.d == 1 else offset % relation.d == 0)
    return IntegerSet((t, at), reached).is_equal(IntegerSet((t, at), wanted))


_MOST_SAMPLES = 512  # points at which a relation is tried before isl is asked whether it holds everywhere


def relate_single(t: Axis, x: Form, k: Form, guards: Sequence[Expr]) -> Relation | Refusal:
    """The relation of a spatial dimension whose operands are read at ``x(t)`` and ``k(t)``."""
    refusal = Refusal(f"{shown(x, k)} are not the points of a convolution")
    if not (is_quasi_affine(x) or is_quasi_affine(k)) or not isinstance(t.extent, Const):
        return refusal
    return _related((t,), x, k, guards) or refusal


def relate_quasi_affine(t: Axis, z: Axis, x: Form, k: Form, guards: Sequence[Expr]) -> Relation | Refusal:
    """The relation of a spatial dimension whose operands are read at ``x(t, z)`` and ``k(t, z)``, one of them with a floor or a remainder."""
    refusal = Refusal(f"{shown(x, k)} under their conditions are not the points of a convolution")
    straight = next((f for f in (k, x) if not is_quasi_affine(f) and abs(f.terms.coefficient(z)) == 1), None)
    if straight is None or not (is_quasi_affine(x) or is_quasi_affine(k)):
        return refusal
    return _related((t, z), x, k, guards) or refusal


def _related(axes: Sequence[Axis], x: Form, k: Form, guards: Sequence[Expr]) -> Relation | None:
    reads = on_stand_ins(axes, x, k, guards)
    _, x_index, k_index, _, same_guards = reads
    ends = [end for axis in axes for end in (axis.lo, axis.hi)]
    if any(isinstance(node, Var) for node in postorder(x_index, k_index, *same_guards, *ends)):
        return None
    return _relate_reads(*reads)


@remembered(1024)
def _relate_reads(
    axes: tuple[Axis, ...],
    x_index: Expr,
    k_index: Expr,
    ends: tuple[Expr | None, ...],
    guards: tuple[Expr, ...],
) -> Relation | None:
    tried = _samples(axes, guards)
    at: dict[Expr, np.ndarray] = dict(zip(axes, tried.T, strict=True))
    columns = (values_at(x_index, at), values_at(k_index, at), tried[:, 0], np.ones(()))
    rows = np.stack([np.broadcast_to(column, tried[:, 0].shape) for column in columns], -1).astype(int)
    coefficients = _coefficients(rows.tolist())
    if coefficients is None:
        return None
    x, k = Form(linear(x_index), (), *ends[:2]), Form(linear(k_index), (), *ends[2:])
    return exact_relation(IntegerSet(axes, guards), guards, x, k, coefficients)


def _samples(axes: Sequence[Axis], guards: Sequence[Expr]) -> np.ndarray:
    """Points at which ``guards`` hold, each a row, drawn from runs of positions at the ends of the axes: of long ones all points are millions."""
    run, runs = isqrt(_MOST_SAMPLES), []
    for axis in axes:
        low, high = known(axis.lo), known(axis.hi)
        if low is None or high is None:
            return np.zeros((0, len(axes)), int)
        runs.append(np.unique([*range(low, min(low + run, high)), *range(max(low, high - run), high)]))
    grid = np.stack(np.meshgrid(*runs, indexing="ij"), -1).reshape(-1, len(axes)).astype(int)
    at: dict[Expr, np.ndarray] = dict(zip(axes, grid.T, strict=True))
    held = [found for guard in guards if (found := tabulated(guard, at)) is not None]
    grid = grid[np.logical_and.reduce([np.broadcast_to(h, len(grid)) for h in held])] if held else grid
    return np.random.default_rng(0).permutation(grid)[:_MOST_SAMPLES]


def _coefficients(rows: Sequence[Sequence[int]]) -> tuple[int, int, int, Expr] | None:
    """``alpha, beta, gamma, c`` of the only relation between ``x``, ``k`` and ``t`` at the points ``(x, k, t, 1)``."""
    solution = _only_relation(rows)
    if solution is None or 0 in solution[:3]:
        return None
    a, b, p, c = solution
    return lowest_terms(a, -b, -p, as_expr(-c))


def is_quasi_affine(form: Form) -> bool:
    """Whether floors or remainders are in it."""
    return any(isinstance(atom, Call) for atom in form.terms.terms)


def is_digit(form: Form) -> bool:
    """Whether it is one floor or remainder by itself, which takes an axis apart without any tap."""
    return len(form.terms.terms) == 1


def _only_relation(rows: Sequence[Sequence[int]]) -> list[int] | None:
    """The integer vector orthogonal to all ``rows`` of four, if it is unique up to a factor."""
    basis: list[tuple[int, list[int]]] = []  # pivot column and row, which has 0 at all other pivots
    for row in rows:
        current = [*row]
        for pivot, own in basis:
            current = _without(current, own, pivot)
        lead = next((n for n, v in enumerate(current) if v), None)
        if lead is None:
            continue
        basis = [(pivot, _without(known, current, lead)) for pivot, known in basis]
        basis.append((lead, current))
        if len(basis) > 3:
            return None
    if len(basis) != 3:
        return None
    (free,) = set(range(4)) - {pivot for pivot, _ in basis}
    scale = lcm(*(known[pivot] for pivot, known in basis))
    vector = {pivot: -known[free] * scale // known[pivot] for pivot, known in basis} | {free: scale}
    shared = gcd(*vector.values())
    return [vector[n] // shared for n in range(4)]


def _without(row: list[int], known: Sequence[int], pivot: int) -> list[int]:
    """A multiple of ``row`` less one of ``known``, so that it is 0 at ``pivot``."""
    if not row[pivot]:
        return row
    own, other = row[pivot], known[pivot]
    found = [other * v - own * w for v, w in zip(row, known, strict=True)]
    shared = gcd(*found) or 1
    return [v // shared for v in found]

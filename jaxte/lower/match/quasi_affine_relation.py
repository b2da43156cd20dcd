"""Spatial dimensions whose equality is not written in the indices, because floors and remainders stand in them.

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
from itertools import islice
from math import lcm

from jaxte.lang.budget import remembered
from jaxte.lang.expr import Axis, Call, Const, Expr, Var, as_expr
from jaxte.lang.walk import postorder
from jaxte.lower.code.spec import Refusal
from jaxte.lower.match.affine_relation import Relation, exact_relation, lowest_terms, on_stand_ins, shown
from jaxte.lower.match.index_terms import Form
from jaxte.sets.affine import linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.tabulate import evaluate_index

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
    return _relate(*reads)


@remembered(1024)
def _relate(
    axes: tuple[Axis, ...],
    x_index: Expr,
    k_index: Expr,
    ends: tuple[Expr | None, ...],
    guards: tuple[Expr, ...],
) -> Relation | None:
    points, rows = IntegerSet(axes, guards), []
    for point in islice(points.points(), _MOST_SAMPLES):
        at: dict[Expr, int] = dict(zip(axes, point, strict=True))
        rows.append([evaluate_index(x_index, at), evaluate_index(k_index, at), point[0], 1])
    coefficients = _coefficients(rows)
    if coefficients is None:
        return None
    x, k = Form(linear(x_index), (), *ends[:2]), Form(linear(k_index), (), *ends[2:])
    return exact_relation(points, guards, x, k, coefficients)


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

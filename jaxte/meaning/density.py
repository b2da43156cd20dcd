"""How many points of a box count: the share of them at which conditions on positions hold, from a sample.

A sum over two taps of which one is left out at every other position takes three quarters of the work that its box says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod

from jaxte.lang.expr import Axis, Expr, Var
from jaxte.lang.graphs import components
from jaxte.lang.walk import free_axes, postorder, reads_of
from jaxte.sets.affine import Linear
from jaxte.sets.conditions import nonnegative_forms
from jaxte.sets.intervals import axis_bounds
from jaxte.sets.values import values_at

_SAMPLES = 64
_FEW = 4  # hits of a sample that are too few to tell by
# Fractions of multiples of these are spread evenly, in each pair of dimensions too, and fall on even and odd positions alike.
_STEPS = (0.6180339887, 0.7548776662, 0.8191725134, 0.8566748839, 0.8812714616)


def share(conditions: Iterable[Expr]) -> float:
    """The part of the points at which all of ``conditions`` hold, as if they were independent of each other."""
    return prod(_share((condition,)) for condition in conditions)


def share_together(conditions: Iterable[Expr]) -> float:
    """The same where those that are about the same axes hold at once: a range is two conditions."""
    return prod(_share(tuple(group)) for group in components(conditions, free_axes))


@lru_cache(maxsize=4096)
def _share(conditions: tuple[Expr, ...]) -> float:
    """Of the points of all axes that ``conditions`` are about; those that nothing is known of leave all."""
    stated = [nonnegative_forms(c) if not reads_of(c) else [] for c in conditions]
    known = [c for c, forms in zip(conditions, stated, strict=True) if forms]
    forms = [form for own in stated for form in own]
    axes = tuple(dict.fromkeys(axis for c in known for axis in free_axes(c)))
    bounds = axis_bounds(axes)
    if not forms or len(bounds) < len(axes) or len(axes) > len(_STEPS) or _has_sizes(forms):
        return 1.0
    held, points = _held(forms, _sample(axes, _SAMPLES))
    if held < _FEW and points == _SAMPLES:
        held, points = _held(forms, _sample(axes, _SAMPLES * _SAMPLES // 2))
    return max(held, 1) / points


def _has_sizes(forms: Sequence[Linear]) -> bool:
    """Whether where ``forms`` are positive depends on symbolic sizes."""
    return any(isinstance(node, Var) for form in forms for node in postorder(*form.terms))


def _held(forms: Sequence[Linear], points: Sequence[dict[Expr, int]]) -> tuple[int, int]:
    least = (
        map(min, *[_values(form, points) for form in forms]) if len(forms) > 1 else _values(forms[0], points)
    )
    return sum(value >= 0 for value in least), len(points)


def _sample(axes: Sequence[Axis], count: int) -> list[dict[Expr, int]]:
    bounds = axis_bounds(axes)
    size = prod(high - low + 1 for low, high in bounds.values())
    if size <= count:
        points: list[dict[Expr, int]] = [{}]
        for axis in axes:
            low, high = bounds[axis]
            points = [{**point, axis: n} for point in points for n in range(low, high + 1)]
        return points
    return [
        {
            axis: bounds[axis][0] + int((n + 1) * step % 1 * (bounds[axis][1] - bounds[axis][0] + 1))
            for axis, step in zip(axes, _STEPS, strict=False)
        }
        for n in range(count)
    ]


def _values(form: Linear, points: Sequence[dict[Expr, int]]) -> list[int]:
    totals = [form.constant] * len(points)
    for atom, coefficient in form.terms.items():
        totals = [t + coefficient * v for t, v in zip(totals, values_at(atom, points), strict=True)]
    return totals

"""How many points of a box count: the share of them at which conditions on positions hold, from a sample.

A sum over two taps of which one is left out at every other position takes three quarters of the work that its box says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from jaxte.lang.expr import Axis, Expr, Var
from jaxte.lang.graphs import components
from jaxte.lang.walk import free_axes, postorder, reads_of
from jaxte.sets.affine import Linear
from jaxte.sets.conditions import nonnegative_forms
from jaxte.sets.intervals import axis_bounds
from jaxte.sets.tabulate import values_at

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
    if not forms or not axes or len(bounds) < len(axes) or len(axes) > len(_STEPS) or _has_sizes(forms):
        return 1.0
    held, points = _held(forms, _sample(axes, _SAMPLES))
    if held < _FEW and points == _SAMPLES:
        held, points = _held(forms, _sample(axes, _SAMPLES * _SAMPLES // 2))
    return max(held, 1) / points


def _has_sizes(forms: Sequence[Linear]) -> bool:
    """Whether where ``forms`` are positive depends on symbolic sizes."""
    return any(isinstance(node, Var) for form in forms for node in postorder(*form.terms))


def _held(forms: Sequence[Linear], points: Mapping[Expr, np.ndarray]) -> tuple[int, int]:
    """At how many of ``points`` all of ``forms`` are at least 0, and how many there are."""
    least = np.minimum.reduce([_values(form, points) for form in forms])
    return int((least >= 0).sum()), len(least)


def _sample(axes: Sequence[Axis], count: int) -> dict[Expr, np.ndarray]:
    bounds = axis_bounds(axes)
    lengths = [high - low + 1 for low, high in bounds.values()]
    if prod(lengths) <= count:
        places = np.indices(lengths).reshape(len(lengths), -1)
    else:
        steps = np.array(_STEPS[: len(lengths)])[:, None]
        places = (np.arange(1, count + 1) * steps % 1 * np.array(lengths)[:, None]).astype(int)
    return {axis: low + own for (axis, (low, _)), own in zip(bounds.items(), places, strict=True)}


def _values(form: Linear, points: Mapping[Expr, np.ndarray]) -> np.ndarray:
    parts = [coefficient * values_at(atom, points) for atom, coefficient in form.terms.items()]
    return sum(parts, np.full(len(next(iter(points.values()))), form.constant))

"""Indices of one dimension that add up its digits, some of them turned or in another order: a reshape, reversals and a transposition.

    x[i ^ 4]              is    x.reshape(-1, 2, 4)[:, ::-1].reshape(n)
    x[i ^ (n - 1)]        is    x[::-1]
    x[8 * (i % 4) + i // 4]    is    x.reshape(4, 8).T.reshape(32)

However such an index is spelled, by operations on bits, remainders or quotients of negatives, its values say what it is: in a number system of
several bases each digit counts for the same everywhere. Which system that is follows from the first positions, and all others are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jaxte.lang.divisions import divisions
from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import place_of
from jaxte.lang.limits import MOST_DIGITS
from jaxte.lang.walk import free_axes
from jaxte.lower.arrays.steps import Pad, Reshape, Roll, Tile, Transpose
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import View
from jaxte.lower.views.affine import affine_view
from jaxte.sets.affine import Linear
from jaxte.sets.intervals import known, same
from jaxte.sets.tabulate import values_along


@dataclass(frozen=True, slots=True)
class Digit:
    """How many values a digit has, and what one of it counts for in the index."""

    extent: int
    step: int


def turned_view(extent: Expr, index: Expr, dim: Axis) -> View | None:
    """The array ``T[index]`` over ``dim``, for a ``T`` with ``extent`` elements; None where the index is no sum of digits, each counted otherwise, or needs zeros or copies."""
    digits = digits_of_values(index, dim)
    if digits is None or known(extent) is None:
        return None
    first, found = digits
    half = (known(dim.hi) or 0) // 2
    if (first, *found) == (half, Digit(half, 1), Digit(2, -half)) and same(extent, dim.hi):
        return View((Roll((half,)),), (dim,))  # halves change places
    if not 1 < len(found) <= MOST_DIGITS or any(d.step == 0 for d in found):
        return None
    dims = [Axis(dim.name, 0, d.extent) for d in reversed(found)]
    form = Linear({a: d.step for a, d in zip(dims, reversed(found), strict=True)}, first)
    view = affine_view(extent, form)
    if isinstance(view, Refusal) or any(isinstance(step, (Pad, Tile)) for step in view.steps):
        return None
    order = tuple(place_of(d, view.dims) for d in dims)
    turned = () if order == tuple(range(len(order))) else (Transpose(order),)
    return View((*view.steps, *turned, Reshape((dim.hi,))), (dim,))


@lru_cache(maxsize=1024)
def ends_of_values(index: Expr) -> tuple[int, int] | None:
    """The least and the greatest value of an index with divisions of one axis; None for any other."""
    axes = list(free_axes(index))
    values = values_along(index, axes[0]) if len(axes) == 1 and divisions(index) else None
    return None if values is None or not len(values) else (int(values.min()), int(values.max()))


@lru_cache(maxsize=1024)
def digits_of_values(index: Expr, dim: Axis) -> tuple[int, tuple[Digit, ...]] | None:
    """The value of ``index`` at 0 and the digits of ``dim`` that it adds up, the least first; None where it is no such sum."""
    values = values_along(index, dim)
    if values is None or not len(values):
        return None
    first, digits = int(values[0]), []
    while len(values) > 1:
        step = int(values[1] - values[0])
        breaks = np.flatnonzero(np.diff(values) != step)
        run = int(breaks[0]) + 1 if len(breaks) else len(values)
        rows = values.reshape(-1, run) if len(values) % run == 0 else None
        if rows is None or np.any(rows != rows[:, :1] + step * np.arange(run)):
            return None
        digits.append(Digit(run, step))
        values = rows[:, 0]
    return first, tuple(digits)

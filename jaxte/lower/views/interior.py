"""Where the interior of a tensor is: the part of its axes at which no read leaves its tensor or wraps around.

``u[i - 1] + u[(i + 1) % n]`` has an interior from 1 up to ``n - 1``, ``u[max((i - 1) // 2, 0)]`` one from 1 on. It ends where an index of one
axis becomes negative or too large, wraps around or meets another end of a minimum, and where a condition on one axis changes. Its values say where:
a quotient that takes its next value all the time has no end there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

import numpy as np

from jaxte.lang.expr import Axis, Call, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.limits import HALVED, MOST_PARTS
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import all_of, free_axes
from jaxte.lower.views.affine import ends_inside
from jaxte.lower.views.condition_box import box_of, split_conditions
from jaxte.lower.views.scope import Scope
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import constant, known
from jaxte.sets.linear import Linear
from jaxte.sets.tabulate import values_along

# times that elements are repeated in slices that are written faster without their ends: three times, or eight, they are not
_REPEATED = (2, 4)
Cuts = Mapping[Axis, tuple[int, int]]  # positions before and after the interior of an axis
Interval = tuple[Axis, int, int]  # an axis, and the first and the last of its positions


def interior_cuts(root: Expr, reads: Sequence[Read], axes: Sequence[Axis], scope: Scope) -> Cuts:
    """What to take off each axis so that reads are in range and conditions the same throughout; empty where that is much."""
    found: dict[Axis, tuple[int, int]] = {}
    for axis, first, last in (*_of_reads(reads), *_of_conditions(root, scope)):
        extent = known(axis.hi) or 0
        # The share of an axis that has to be left of it.
        if not among(axis, axes) or HALVED * (last - first + 1) < extent:
            return {}
        before, after = found.get(axis, (0, 0))
        found[axis] = max(before, first), max(after, extent - 1 - last)
    for axis, (before, after) in found.items():
        if HALVED * (before + after) > (known(axis.hi) or 0):
            return {}
    return {axis: found[axis] for axis in axes if axis in found and any(found[axis])}


def _of_reads(reads: Sequence[Read]) -> Iterator[Interval]:
    """Where each index of one axis is in range, and takes its steps evenly: does not wrap, is not held at an end."""
    for read in reads:
        for index, extent in zip(read.indices, read.tensor.shape, strict=True):
            axes, size = list(free_axes(index)), known(as_expr(extent))
            form = linear_or_none(index) if len(axes) == 1 and size is not None else None
            # most are an axis, shifted
            if form is not None and axes[0] in form.terms and len(form.terms) == 1:
                yield from _of_steps(axes[0], form, size or 0)
                continue
            values = values_along(index, axes[0]) if len(axes) == 1 and size is not None else None
            if values is None or not len(values):
                continue
            first, last = _even_part(values)
            inside = np.flatnonzero((values >= 0) & (values < size))
            inside = inside[(inside >= first) & (inside <= last)]
            if len(inside) < len(values):
                yield (axes[0], int(inside[0]), int(inside[-1])) if len(inside) else (axes[0], 0, -1)


def _of_steps(axis: Axis, form: Linear, size: int) -> Iterator[Interval]:
    """Where a multiple of ``axis``, shifted, is below ``size`` and not below 0, if that is not everywhere."""
    first, count, stride = known(axis.lo), known(axis.extent), form.terms[axis]
    if first is None or not count:
        return
    inside = ends_inside(size, form.constant + stride * first, stride, count)
    if inside != (0, count - 1):
        yield (axis, *inside) if inside else (axis, 0, -1)


def _even_part(values: np.ndarray) -> tuple[int, int]:
    """The first and the last of the positions around the middle one between which ``values`` take the same step everywhere, or at every second or fourth position.

    >>> _even_part(np.array([0, 0, 1, 2, 3, 4, 4, 4]))
    (1, 5)
    >>> _even_part(np.array([0, 0, 0, 1, 1, 2, 2, 3]))
    (1, 7)
    """
    changes = np.flatnonzero(values[1:] != values[:-1])
    middle = int(np.searchsorted(changes, len(values) // 2))

    def end(place: int) -> int:
        """The last position before the change at ``place``, or the last of all; -1 before the first."""
        if place == 0:
            return -1
        return int(changes[place - 1]) if place <= len(changes) else len(values) - 1

    held = end(middle + 1) - end(middle)  # positions with the value of the middle one
    found = [(held, -inf, end(middle) + 1)]
    for every in (1, *_REPEATED) if len(changes) else ():
        for beside in {max(middle - 1, 0), min(middle, len(changes) - 1)}:
            low, high = _run_around(values, changes, every, beside)
            step = int(values[changes[low] + 1] - values[changes[low]])
            first = max(end(low) + 1, end(low + 1) + 1 - every)
            last = min(end(high + 1) + every, end(high + 2))
            if every == 1 or low < high:
                found.append((last + 1 - first, -abs(step), first))
    length, _, first = max(found)
    return first, first + length - 1


def _run_around(values: np.ndarray, changes: np.ndarray, every: int, beside: int) -> tuple[int, int]:
    """The first and the last of the changes around the one at ``beside`` that are ``every`` positions from each other, with one step."""
    step = values[changes[beside] + 1] - values[changes[beside]]
    # Changes on either side of the middle: an index of digits ends its run after a few.
    wide = MOST_PARTS
    while True:
        start, stop = max(beside - wide, 0), min(beside + wide + 1, len(changes))
        near = changes[start:stop]
        breaks = (near[1:] - near[:-1] != every) | (values[near[1:] + 1] - values[near[1:]] != step)
        breaks |= values[near[:-1] + 1] - values[near[:-1]] != step
        here = np.flatnonzero(breaks)
        after = int(np.searchsorted(here, beside - start))
        low = start + int(here[after - 1]) + 1 if after else start
        high = start + int(here[after]) if after < len(here) else stop - 1
        if (after or start == 0) and (after < len(here) or stop == len(changes)):
            return low, high
        wide *= 8


def _of_conditions(root: Expr, scope: Scope) -> Iterator[Interval]:
    """Where each condition on one axis holds, if that is most of it, or fails."""
    for node in all_of(Call, root):
        if node.op is SELECT:
            for part in split_conditions(node.args[0], scope) or ():
                box = box_of(part, scope)
                if box is None or box.step != 1:
                    continue
                first, last = box.start, box.stop - constant(1)
                if first.is_constant and last.is_constant and known(box.dim.hi) is not None:
                    yield _larger_part(box.dim, first.constant, last.constant)


def _larger_part(axis: Axis, first: int, last: int) -> Interval:
    """The interval itself, or what is before or after it, whichever is the longest."""
    extent = known(axis.hi) or 0
    parts = [(first, last), (0, first - 1), (last + 1, extent - 1)]
    return (axis, *max(parts, key=lambda part: part[1] - part[0]))

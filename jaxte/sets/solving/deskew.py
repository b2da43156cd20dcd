"""Boxes around integer sets: each variable shifted so that it starts at 0 and has as few values as can be.

A variable ``z`` bounded by ``L <= z <= U``, where the bounds move with what stands outside, becomes ``L + z'`` or
``U - z'`` with ``z'`` from 0, whichever leaves fewer values; its own range is kept where that is as small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Axis, Call, Const, Expr, as_expr
from jaxte.lang.operators import MAXIMUM, MINIMUM
from jaxte.lang.text import text
from jaxte.lang.walk import postorder
from jaxte.sets.affine import floor_divide, from_linear, linear, normal
from jaxte.sets.domain import IntegerSet, Range
from jaxte.sets.index_forms import nonnegative_forms
from jaxte.sets.intervals import axis_bounds
from jaxte.sets.linear import Linear
from jaxte.sets.resolved import resolved
from jaxte.sets.solving.elimination import replace, replaced

Bounds = Mapping[Expr, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Box:
    """A box of new variables.

    Attributes:
        axes: the new variables, each with its range.
        values: each old variable in terms of the new ones and of what stands outside.
        origin: each new variable in terms of the old ones.
        shifted: how many variables were moved.
    """

    axes: tuple[Axis, ...]
    values: Mapping[Expr, Linear]
    origin: Mapping[Expr, Linear]
    shifted: int

    def assigned(self, axis: Expr, value: Linear) -> Box:
        """The box without ``axis``, which has ``value`` wherever there are points."""
        values = {v: replace(form, axis, value) for v, form in self.values.items()}
        origin = {a: form for a, form in self.origin.items() if a is not axis}
        return Box(tuple(a for a in self.axes if a is not axis), values, origin, self.shifted)

    def volume(self) -> tuple[int, int]:
        """For comparing boxes: how many extents are symbolic, and the product of the others."""
        symbolic, product = 0, 1
        for axis in self.axes:
            extent = axis.extent
            if isinstance(extent, Const):
                product *= int(extent.value)  # type: ignore[arg-type]
            else:
                symbolic += 1
        return symbolic, product


def surround(
    points: IntegerSet,
    variables: Sequence[Expr],
    conditions: Sequence[Expr],
    ranges: Mapping[Expr, Range | None],
    outer: Sequence[Expr],
) -> Box | None:
    """The smallest box found around the points of ``variables`` for each value of ``outer``; None if unbounded.

    ``points`` are those of ``outer`` and ``variables`` at which the ``conditions`` hold; there must be some.
    """
    forms = [f for c in conditions for f in nonnegative_forms(c)]
    forms += [f for v in variables for f in _range_forms(v, ranges)]
    hulls: dict[Expr, tuple[Expr, Expr]] = {}
    for variable in variables:
        hull = _hull(points, variable, ranges)
        if hull is None:
            return None
        hulls[variable] = hull
    values: dict[Expr, Linear] = {v: Linear({v: 1}) for v in variables}
    origin: dict[Expr, Linear] = {}
    axes: list[Axis] = []
    shifted = 0
    order = sorted(variables, key=lambda v: -max((abs(f.coefficient(v)) for f in forms), default=0))
    for variable in order:
        forms_now = [_substituted(f, values, variable) for f in forms]
        shift, sign, extent = _best_shift(points, variable, hulls, forms_now, (*outer, *axes), origin)
        start, new, moved = _new_axis(variable, hulls.pop(variable), shift, extent)
        shifted += moved
        if new is None:
            values[variable] = start
        else:
            values[variable] = start + Linear({new: sign})
            origin[new] = (Linear({variable: 1}) - replaced(start, origin)) * sign
            axes.append(new)
    in_order = sorted(axes, key=lambda a: min(i for i, v in enumerate(variables) if a in values[v].terms))
    return Box(tuple(in_order), values, origin, shifted)


def _substituted(form: Linear, values: Mapping[Expr, Linear], current: Expr) -> Linear:
    for variable, value in values.items():
        if variable is not current and variable not in value.terms:
            form = replace(form, variable, value)
    return form


def _range_forms(variable: Expr, ranges: Mapping[Expr, Range | None]) -> list[Linear]:
    if variable in ranges:
        own = ranges[variable]
    else:
        own = (variable.lo, variable.hi) if isinstance(variable, Axis) else None
    if own is None:
        return []
    lo, hi = (linear(as_expr(end)) for end in own)
    return [Linear({variable: 1}) - lo, hi - Linear({variable: 1}, 1)]


def _hull(
    points: IntegerSet, variable: Expr, ranges: Mapping[Expr, Range | None]
) -> tuple[Expr, Expr] | None:
    """Least and greatest value of ``variable``, in terms of sizes: of its own range where they are one of several, as these may be."""
    high, low = points.maximum(variable), points.maximum(-variable)  # type: ignore[operator]
    own = ranges.get(variable, (variable.lo, variable.hi) if isinstance(variable, Axis) else None)
    if own is not None and (high is None or low is None or _chooses(high) or _chooses(low)):
        return as_expr(own[0]), normal(as_expr(own[1]) - 1)
    return None if high is None or low is None else (normal(-low), high)


def _chooses(size: Expr) -> bool:
    return any(isinstance(n, Call) and n.op in (MINIMUM, MAXIMUM) for n in postorder(size))


def _best_shift(
    points: IntegerSet,
    variable: Expr,
    hulls: Mapping[Expr, tuple[Expr, Expr]],
    forms: Sequence[Linear],
    outer: Sequence[Expr],
    origin: Mapping[Expr, Linear],
) -> tuple[Linear | None, int, Expr]:
    """``(shift, sign, extent)``: ``variable = shift + sign * z`` with z from 0; shift None keeps the range.

    The shift may move with the axes of ``outer``, those among them that were made before are in ``origin``.
    """
    low, high = hulls[variable]
    best: tuple[Linear | None, int, Expr] = (None, 1, normal(high - low + 1))
    best_rank = (*_size(best[2]), 0, 0)
    if best_rank[:2] == (0, 1):
        return best
    bounds = axis_bounds(a for a in outer if isinstance(a, Axis))
    for bound, sign in dict.fromkeys(_moving_bounds(variable, hulls, forms)):
        form = resolved(linear(bound), bounds)
        if form.is_constant:
            continue
        most = points.maximum((variable - from_linear(replaced(form, origin))) * sign)
        if most is None:
            continue
        extent = normal(most + 1)
        rank = (*_size(extent), 1, len(text(from_linear(form))))
        if rank < best_rank:
            best, best_rank = (form, sign, extent), rank
    return best


def _size(extent: Expr) -> tuple[int, int]:
    return (0, int(extent.value)) if isinstance(extent, Const) else (1, 0)  # type: ignore[arg-type]


def _moving_bounds(
    variable: Expr, hulls: Mapping[Expr, tuple[Expr, Expr]], forms: Sequence[Linear]
) -> Iterable[tuple[Expr, int]]:
    """The bounds of ``variable`` that follow from ``form >= 0``: ``(lower, 1)`` and ``(upper, -1)``."""
    for form in forms:
        factor = form.coefficient(variable)
        if not factor or any(
            atom not in hulls and any(node in hulls for node in postorder(atom)) for atom in form.terms
        ):
            continue
        rest = form.without(variable)
        for other, (low, high) in hulls.items():
            if other in rest.terms:  # relax: another variable takes the end of its range that allows most
                end = high if rest.terms[other] > 0 else low
                rest = replace(rest, other, linear(end))
        if rest.is_constant:
            continue
        if factor > 0:  # variable >= ceil(-rest / factor)
            yield from_linear(floor_divide(rest * -1 + Linear({}, factor - 1), factor)), 1
        else:
            yield from_linear(floor_divide(rest, -factor)), -1


def _new_axis(
    variable: Expr, hull: tuple[Expr, Expr], shift: Linear | None, extent: Expr
) -> tuple[Linear, Axis | None, int]:
    """Where the new variable starts, the new axis (None for a single value) and whether it was moved."""
    name = str(getattr(variable, "name", "z"))
    if shift is not None:
        single = isinstance(extent, Const) and extent.value == 1
        return shift, None if single else Axis(name, 0, extent, reduction=True), 1
    low, high = hull
    if low is high:
        return linear(low), None, 0
    return Linear({}), Axis(name, low, normal(high + 1), reduction=True), 0

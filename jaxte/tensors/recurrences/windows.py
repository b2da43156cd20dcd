"""Few elements of an array that a step reads, from one on that the clock moves: ``x[t + k]`` with few ``k``."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.lang.walk import free_axes, reads_of
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.index_forms import linear_or_none
from jaxte.sets.intervals import highest, index_stays_in, known, lowest

_SPARSE = 4  # how many elements of a window there may be for each that is read


@dataclass(frozen=True)
class Window:
    """``length`` elements from ``start`` on, read at ``rest`` within."""

    start: Expr
    length: int
    rest: Expr


def window_of(index: Expr, extent: int | Expr, clock: Axis) -> Window | None:
    """The elements along an axis of ``extent`` elements of which ``index`` is at all points of a position of ``clock``."""
    form = linear_or_none(index)
    if form is None or reads_of(index):
        return None
    moved = form.coefficient(clock)
    rest = linear(normal(index - moved * clock))
    axes = free_axes(from_linear(rest))
    low, high = lowest(rest), highest(rest)
    if not moved or clock in axes or low is None or high is None:
        return None
    if not low.is_constant or not high.is_constant:
        return None
    length = int(high.constant - low.constant) + 1
    own = [known(a.extent) for a in axes]
    if any(n is None for n in own) or length > _SPARSE * prod(n for n in own if n is not None):
        return None
    start = normal(clock * moved + low.constant)
    if not all(index_stays_in(e, as_expr(extent)) for e in (start, start + (length - 1))):
        return None
    return Window(start, length, normal(from_linear(rest) - low.constant))

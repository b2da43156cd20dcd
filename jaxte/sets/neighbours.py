"""Indices that follow one axis at a distance: ``i + 2``, and ``(i + 2) % n`` around the end of a tensor."""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import Axis, Expr
from jaxte.sets.index_forms import linear_or_none


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The position at a distance from ``axis``.

    Attributes:
        period: after how many positions it begins again, where it does.
    """

    axis: Axis
    distance: int
    period: int | None = None

    @property
    def opposite(self) -> Neighbour:
        """The one at the same distance on the other side."""
        distance = -self.distance if self.period is None else -self.distance % self.period
        return Neighbour(self.axis, distance, self.period if distance else None)


def neighbour(index: Expr, extent: int | Expr) -> Neighbour | None:
    """``index`` into an axis of ``extent`` elements as a neighbour of an axis; None if it is something else.

    >>> i = te.reduce_axis((0, 8), "i")
    >>> found = neighbour((i - 2) % 8, 8)
    >>> found.distance, found.opposite.distance
    (6, 2)
    """
    period = None
    match division(index):
        case Remainder(inside, int() as value):
            if not isinstance(extent, int) or value != extent:
                return None
            index, period = inside, value
    form = linear_or_none(index)
    if form is None or len(form.terms) != 1:
        return None
    ((axis, factor),) = form.terms.items()
    if not isinstance(axis, Axis) or factor != 1:
        return None
    return Neighbour(axis, form.constant % period if period else form.constant, period)

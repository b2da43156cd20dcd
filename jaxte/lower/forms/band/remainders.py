"""A band with a step as bands without one, side by side: one for each remainder of the rows.

Column ``g r + s z`` is, for the rows ``r = s q + m`` of one remainder ``m``, the column ``g q + z`` of those that are ``s`` apart from
``g m`` on. Where windows move by one column a row, these are what a reshape to rows of ``s`` makes of all columns; where they move
by a stride ``g``, there is a slice for each remainder.
"""

from __future__ import annotations

from jaxte.lang.expr import Expr, as_expr
from jaxte.lower.arrays.leaves import Number, Typed
from jaxte.lower.arrays.loops import Each, Loop, Stacked, Total
from jaxte.lower.arrays.views import Spread
from jaxte.lower.code.lettered_array import NO_WIDTH, Shaped


def columns_in_all(count: int, stride: int, step: int) -> int:
    """The number of columns, where there are ``count`` for each remainder."""
    return stride * (step - 1) + step * (count - 1) + 1


def by_remainders(y: Shaped, at: int, stride: int, step: int, loop: Loop) -> Shaped:
    """The columns in dimension ``at`` of ``y`` as those of each remainder, which come next."""
    count = (y.extents[at] - stride * (step - 1) - 1) // step + 1
    if stride == 1:
        return y.reshaped(at, 1, "js", (count, step))
    taken = y.moving(at, stride * loop.axis, step, count)
    letters = f"{y.letters[: at + 1]}s{y.letters[at + 1 :]}"
    extents = (*y.extents[:at], count, step, *y.extents[at + 1 :])
    return Shaped(Stacked((Each(taken.node, (loop,)),), at + 1), letters, extents)


def added_remainders(y: Shaped, at: int, stride: int, loop: Loop, dtype: str) -> Shaped:
    """All columns in dimension ``at``, of those of each remainder in the next one: the other way round."""
    count, step = y.extents[at : at + 2]
    length = columns_in_all(count, stride, step)
    if stride == 1:
        return y.reshaped(at, 2, "j", (length,))
    taken, turn = y.at(at + 1, loop.axis), loop.axis
    widths: list[tuple[Expr, Expr, int]] = [(*NO_WIDTH, 0)] * len(taken.extents)
    widths[at] = stride * turn, stride * (as_expr(step - 1) - turn), step - 1
    placed = Spread(taken.node, Typed(Number(0), dtype), tuple(widths))
    extents = (*y.extents[:at], length, *y.extents[at + 2 :])
    return Shaped(Total(Each(placed, (loop,))), taken.letters, extents)

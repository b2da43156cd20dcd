"""The banded product as a specification: what is multiplied, and which dimension of each array plays which role.

A band with a step as bands without one, side by side: one for each remainder of the rows.

Column ``g r + s z`` is, for the rows ``r = s q + m`` of one remainder ``m``, the column ``g q + z`` of those that are ``s`` apart from
``g m`` on. Where windows move by one column a row, these are what a reshape to rows of ``s`` makes of all columns; where they move
by a stride ``g``, there is a slice for each remainder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jaxte.algebra.product import multiplied
from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.lang.graphs import among, place_of
from jaxte.lang.walk import free_axes, reads_of
from jaxte.lower.arrays.elementwise import Number, Typed
from jaxte.lower.arrays.loops import Each, Loop, Stacked, Total
from jaxte.lower.arrays.views import Spread
from jaxte.lower.code.lettered_array import NO_WIDTH, Shaped
from jaxte.lower.code.spec import Array, array
from jaxte.lower.match.index_terms import Form, rewrite_forms
from jaxte.lower.match.two_operands import Operand

SCORES, WEIGHTED, TRANSPOSED = "scores", "weighted", "transposed"
ROW, DIAGONAL, COLUMN = "row", "diagonal", "column"


class Part(NamedTuple):
    """What a dimension is to a band: the rows, diagonals or columns of the one with this number."""

    role: str
    band: int


@dataclass(frozen=True, slots=True)
class Dims:
    """An operand of a banded product: an array and the role of each of its dimensions: its part in a band, or its own axis."""

    array: Array
    roles: tuple[Part | Axis, ...]

    def extent(self, role: Part | Axis) -> int:
        return int(self.array.axes[place_of(role, self.roles)].hi)


@dataclass(frozen=True, slots=True)
class Band:
    """The points (r, z) of a band; column ``stride * r + step * z - before`` is theirs.

    Attributes:
        rows, window, columns: extents of r, of z and of the columns.
        stride: how many columns the window moves from row to row.
        step: how far apart the columns of a window are. Where it is negative, diagonals are counted from the last one, at ``before``.
        before: the position of the first column on the line, counted from the first row's first one.
    """

    rows: int
    window: int
    columns: int
    stride: int
    step: int
    before: int

    @property
    def remainders(self) -> int:
        """How many bands without steps it is, side by side: one for each remainder of the rows."""
        return abs(self.step)

    @property
    def reach(self) -> int:
        """The columns from the first row's first to the last row's last."""
        return self.stride * (self.rows - 1) + abs(self.step) * (self.window - 1) + 1


@dataclass(frozen=True, slots=True)
class BandSpec:
    """A banded product.

    Attributes:
        kind: what is made: "scores", "weighted" or "transposed".
        bands: the bands, one for each pair of dimensions that meet in an index.
        first, second: the operands.
        out: the roles of the result's dimensions, in order.
        scale: what the result is multiplied by.
    """

    kind: str
    bands: tuple[Band, ...]
    first: Dims
    second: Dims
    out: tuple[Part | Axis, ...]
    scale: Array | None

    @property
    def operands(self) -> tuple[Array, ...]:
        own = (self.first.array, self.second.array)
        return own if self.scale is None else (*own, self.scale)


def dims_of(
    operand: Operand,
    replaced: Sequence[tuple[Form, Expr]],
    parts: Mapping[Axis, Part],
) -> Dims:
    """An operand over single axes, in the order in which its largest read has them."""
    body = rewrite_forms(multiplied(operand.factors), replaced)
    own = list(free_axes(body))
    reads = sorted((r for r in reads_of(body) if free_axes(r)), key=lambda r: -len(free_axes(r)))
    seen = [a for r in reads for index in r.indices for a in free_axes(index)]
    order = [a for a in dict.fromkeys([*seen, *own]) if among(a, own)]
    return Dims(array(order, body), tuple(parts.get(a, a) for a in order))


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

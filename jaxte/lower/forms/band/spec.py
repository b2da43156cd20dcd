"""The banded product as a specification: what is multiplied, and which dimension of each array plays which role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jaxte.algebra.product import multiplied
from jaxte.lang.expr import Axis, Expr
from jaxte.lang.identity import among, place_of
from jaxte.lang.walk import free_axes, reads_of
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

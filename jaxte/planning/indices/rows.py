"""Elements of one gathered row as reads of a tensor of such rows: each row is gathered once, and its adjoint is scattered once.

    v[faces[f, 1], (c + 1) % 3] * v[faces[f, 1], (c + 2) % 3]   is   R[f, (c + 1) % 3] * R[f, (c + 2) % 3]
    with                                                             R[f, d] = v[faces[f, 1], d]

Several elements of a row at a position that is data would each be gathered, and each of their adjoints added to where it belongs, row by
row again. With the rows as a tensor all else has positions that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Expr, Read
from jaxte.lang.graphs import among
from jaxte.lang.limits import MOST_TERMS
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.shapes import Extent
from jaxte.tensors.structure import Rows
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class _Place:
    """Rows of ``tensor``: ``at`` has the indices that are data, and None for each dimension of a row."""

    tensor: Tensor
    at: tuple[Expr | None, ...]

    def rest(self, read: Read) -> tuple[Expr, ...]:
        """Where in the row ``read`` is."""
        return tuple(index for index, own in zip(read.indices, self.at, strict=True) if own is None)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(dict.fromkeys(a for index in self.at if index is not None for a in free_axes(index)))

    @property
    def shape(self) -> list[Extent]:
        """The extents of a row."""
        return [e for e, own in zip(self.tensor.shape, self.at, strict=True) if own is None]


def with_rows(body: Expr) -> Expr:
    """``body`` with reads of several elements of a gathered row as reads of rows."""
    places: dict[_Place, dict[Read, None]] = {}
    for read in reads_of(body):
        if any(map(reads_of, read.indices)) and (place := _place(read)) is not None:
            places.setdefault(place, {})[read] = None
    table: dict[Expr, Expr] = {}
    made: list[Rows] = []
    for place, reads in places.items():
        if _gains(place, list(reads)) and (rows := _rows(place, len(made))) is not None:
            made.append(rows)
            table |= {read: Read(rows, [*place.axes, *place.rest(read)]) for read in reads}
    return substitute(body, table) if table else body


def _place(read: Read) -> _Place | None:
    """The rows that ``read`` has an element of; None where it has none, or where a row has no length."""
    if not dtypes.is_inexact(read.tensor.dtype):
        return None
    place = _Place(read.tensor, tuple(i if reads_of(i) else None for i in read.indices))
    rest = place.rest(read)
    if not rest or not all(map(is_index, rest)) or not all(isinstance(e, int) for e in place.shape):
        return None
    return place if all(axis.lo is ZERO for axis in place.axes) else None


def _gains(place: _Place, reads: Sequence[Read]) -> bool:
    """Whether ``reads`` are several elements of each row, most of a short one together."""
    rests = dict.fromkeys(place.rest(read) for read in reads)
    inner = [[a for index in rest for a in free_axes(index)] for rest in rests]
    if len(rests) < 2 or any(among(a, place.axes) for own in inner for a in own):
        return False
    length = prod(e for e in place.shape if isinstance(e, int))
    met = sum(prod(map(extent, dict.fromkeys(own))) for own in inner)
    return length <= MOST_TERMS and 2 * met >= length


def _rows(place: _Place, number: int) -> Rows | None:
    """The tensor of rows; None where it would read what only a condition keeps in range."""
    own = {a: Axis(a.name, 0, a.hi) for a in place.axes}
    row = [Axis("d", 0, e) for e in place.shape]
    positions = iter(row)
    indices = [next(positions) if i is None else substitute(i, own) for i in place.at]
    axes = [*own.values(), *row]
    element = Read(place.tensor, indices)
    name = f"{place.tensor.name}_rows" + (f"_{number}" if number else "")
    return Rows(name, axes, element) if reads_inside(axes, element) else None

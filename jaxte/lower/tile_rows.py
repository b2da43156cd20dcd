"""Tensors for one position of an axis: what a tile computes for each of its rows.

``T[..., i, ...]`` for a single ``i`` is a tensor of one axis less, if everything that its body reads through ``i`` is a row as
well. Reads are taken over in three ways:

- ``P[..., i, ...]`` where ``P`` itself is computed in the tile: the row of ``P``, computed in the same place;
- ``X[..., f(i), ...]`` where ``i`` alone decides the position: a slice of ``X``, which the map hands to the row. As
  everywhere, positions outside of ``X`` are zeros behind a guard;
- ``X[I[i], ...]``, a position that is data: ``X`` as it is, at the position that the row is handed.

An index that mixes ``i`` with another axis (``X[i + k]``) is none of these. ``i`` as a number is handed to the row too.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from jaxte.expr import Axis, Expr, Read, cast
from jaxte.lower.specs import Array, Refusal
from jaxte.tensor import Compute, Placeholder, Tensor
from jaxte.text import text
from jaxte.walk import depends_on, free_axes, postorder, reads_of, substitute


class NoRow(Exception):
    """Why a tensor has no rows along an axis."""


@dataclass(frozen=True)
class Handed:
    """What the map hands to each row: ``row`` is the placeholder for the part of ``array`` at one position."""

    row: Placeholder
    array: Array


class Rows:
    """The rows of tensors along axes of one extent.

    Attributes:
        extent: of these axes.
        inside: tensors of which a row may read the same row only.
        handed: slices, by what they are slices of.
        tensors: the rows, each after those that it reads, by tensor and position of the axis.
    """

    def __init__(self, inside: Container[Tensor], extent: Expr) -> None:
        self.inside = inside
        self.extent = extent
        self.handed: dict[object, Handed] = {}
        self.tensors: dict[tuple[Compute, int], Compute] = {}

    def row(self, tensor: Compute, position: int) -> Compute:
        """``tensor`` at one point of its axis at ``position``.

        Raises:
            NoRow: it reads more than a row of what is computed inside.
        """
        key = (tensor, position)
        if key not in self.tensors:
            axis = tensor.axes[position]
            body = substitute(tensor.body, self._table(tensor.body, axis))
            if body.dtype != tensor.dtype:
                body = cast(body, tensor.dtype)
            others = (*tensor.axes[:position], *tensor.axes[position + 1 :])
            self.tensors[key] = Compute(f"{tensor.name}_{axis.name}", others, body)
        return self.tensors[key]

    def _table(self, body: Expr, axis: Axis) -> dict[Expr, Expr]:
        """What stands in the row for the reads of ``body`` that depend on ``axis``, and for the axis itself."""
        table: dict[Expr, Expr] = {}
        for node in postorder(body):
            if isinstance(node, Read):
                found = self._read(node, axis, table)
                if found is not node:
                    table[node] = found
        if depends_on(substitute(body, table), (axis,)):
            table[axis] = self._number(axis)
        return table

    def _read(self, read: Read, axis: Axis, table: Mapping[Expr, Expr]) -> Expr:
        moving = [n for n, index in enumerate(read.indices) if depends_on(index, (axis,))]
        if read.tensor in self.inside:
            return self._inside(read, axis, moving, table)
        if not moving:
            return read
        if any(reads_of(read.indices[n]) for n in moving):
            own = dict(table)
            indices = [substitute(index, own) for index in read.indices]
            if any(depends_on(index, (axis,)) for index in indices):
                own[axis] = self._number(axis)
                indices = [substitute(index, own) for index in indices]
            return Read(read.tensor, indices)
        for n in moving:
            if any(a is not axis for a in free_axes(read.indices[n])):
                raise NoRow(f"{text(read)} mixes {axis.name} with other axes")
        indices = [substitute(index, table) for n, index in enumerate(read.indices) if n not in moving]
        return Read(self._slice(read, axis, moving), indices)

    def _inside(self, read: Read, axis: Axis, moving: list[int], table: Mapping[Expr, Expr]) -> Expr:
        if len(moving) != 1 or read.indices[moving[0]] is not axis:
            raise NoRow(f"{text(read)} is more than the row of {axis.name}")
        if int(read.tensor.axes[moving[0]].hi) < int(self.extent):
            raise NoRow(f"{text(read)} leaves {read.tensor.name} for some {axis.name}")
        own = self.row(read.tensor, moving[0])
        return Read(own, [substitute(index, table) for n, index in enumerate(read.indices) if n != moving[0]])

    def _slice(self, read: Read, axis: Axis, moving: list[int]) -> Placeholder:
        """The placeholder for what is left of a tensor at the positions that ``axis`` decides."""
        tensor = read.tensor
        own = Axis(axis.name, 0, self.extent)
        positions = {n: substitute(read.indices[n], {axis: _MARK}) for n in moving}
        key = (tensor, tuple(positions.items()))
        if key not in self.handed:
            rest = [Axis(f"{tensor.name}{n}", 0, e) for n, e in enumerate(tensor.shape) if n not in positions]
            left = iter(rest)
            at = [
                substitute(read.indices[n], {axis: own}) if n in positions else next(left)
                for n in range(tensor.ndim)
            ]
            shape = tuple(e for n, e in enumerate(tensor.shape) if n not in positions)
            row = Placeholder(f"{tensor.name}_{axis.name}", shape, tensor.dtype)
            self.handed[key] = Handed(row, Array((own, *rest), Read(tensor, at)))
        return self.handed[key].row

    def _number(self, axis: Axis) -> Expr:
        """The position itself, as data."""
        if "position" not in self.handed:
            row, own = Placeholder(axis.name, (), "int32"), Axis(axis.name, 0, self.extent)
            self.handed["position"] = Handed(row, Array((own,), cast(own, "int32")))
        return Read(self.handed["position"].row, ())


_MARK = Axis("row", 0, 1)  # stands for the axis in keys of slices


def rows_or_refusal(rows: Rows, tensor: Compute, position: int) -> Compute | Refusal:
    """The row of ``tensor``, or why there is none."""
    try:
        return rows.row(tensor, position)
    except NoRow as reason:
        return Refusal(str(reason))

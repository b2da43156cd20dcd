"""Copies of arrays with their ends continued, of which periodic reads are slices: ``x[(i + s) % n, (j + t) % m]`` as ``copy[i + s + 1, j + t + 1]``.

Which arrays have one is chosen in :mod:`jaxte.lower.program.across.continued_ends`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from jaxte.lang.expr import Axis, Expr, Read, Reduce
from jaxte.lang.walk import postorder, reads_of
from jaxte.sets.bent import Bend, Piece
from jaxte.sets.intervals import known
from jaxte.sets.neighbours import Neighbour, neighbour
from jaxte.tensors.copies import extended
from jaxte.tensors.tensor import Tensor

Shifts = tuple[int, ...]  # of a read, for each axis of its tensor
Halo = tuple[
    int, ...
]  # how far the ends of each axis are continued, as far before as after it: both passes then often have the same copy


def periodic_reads(root: Expr) -> Mapping[Read, Shifts]:
    """The reads below ``root`` at an axis for each of the tensor's, all of it, some of them shifted around its end; none beside reductions."""
    if any(isinstance(node, Reduce) for node in postorder(root)):
        return {}
    found: dict[Read, Shifts] = {}
    for read in reads_of(root):
        places = [neighbour(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True)]
        shifts = [_shift(p, e) for p, e in zip(places, read.tensor.shape, strict=True)]
        if all(s is not None for s in shifts) and len({p.axis for p in places if p}) == len(shifts):
            found[read] = tuple(s or 0 for s in shifts)
    return found


def _shift(place: Neighbour | None, extent: int | Expr) -> int | None:
    """How far around its end a whole axis is turned, the least of both ways; None where ``place`` is something else."""
    if place is None or known(place.axis.extent) != extent or (place.distance and not place.period):
        return None
    shift, period = place.distance, place.period or 0
    return shift - period if 2 * shift > period else shift


def around(shifts: Iterable[Shifts]) -> Halo:
    """The halo in which all of ``shifts`` are."""
    return tuple(max(map(abs, column)) for column in zip(*shifts, strict=True))


def growth(tensor: Tensor, halo: Halo) -> float:
    """The elements of the copy for each of ``tensor``."""
    return prod(
        1 + 2 * width / size for size, width in zip(tensor.shape, halo, strict=True) if isinstance(size, int)
    )


def copies(tensor: Tensor, halo: Halo) -> list[Tensor]:
    """The copies that continue one axis after the other; the last one has them all."""
    found: list[Tensor] = []
    for axis, width in enumerate(halo):
        size = tensor.shape[axis]
        if width and isinstance(size, int):
            whole = size + 2 * width
            starts = [(0, width, size - width), (width, width + size, 0), (width + size, whole, 0)]
            pieces = tuple(Piece(start, stop, first, 1) for start, stop, first in starts)
            tensor = extended(tensor, axis, Bend(Axis("p", 0, whole), whole, pieces))
            found.append(tensor)
    return found


def within(read: Read, shifts: Shifts, halo: Halo, copy: Tensor) -> Read:
    """``read`` as one of the copy of its tensor."""
    places = [neighbour(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True)]
    return Read(copy, [p.axis + (s + h) for p, s, h in zip(places, shifts, halo, strict=True) if p])

"""Tensors with their ends continued: ``x[(i + k) % n]`` reads ``x_extended[i + k]``, which begins again where ``x`` ends.

A read at a bent index of several axes (:mod:`jaxte.sets.bent`) is straight in a copy of the tensor that is as long as the form of axes has
values: the elements before the first and after the last stand there once, whatever reads them. What reads the copy is a window, a
convolution or a Toeplitz product like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Const, Expr, Read, call
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.bent import Bend, Piece, bend_of
from jaxte.sets.intervals import axis_bounds
from jaxte.tensors.tensor import Compute, Tensor, axis_names_of, new_axes

_MOST_GROWTH = 1.25  # elements of a copy for each point at which it is read
# And of all of it, slices that are not read included, for each element that is read or exists.
_MOST_MEMORY = 4


class Extended(Compute):
    """A tensor with one of its axes continued at its ends."""

    __slots__ = ()


@dataclass(frozen=True)
class Straight:
    """A body of which some reads are of copies.

    Attributes:
        body: with these reads.
        copies: the tensors that they read, each after what it is made of.
    """

    body: Expr
    copies: tuple[Extended, ...]


def with_copies(body: Expr, wanted: Callable[[Read], bool], known: dict[object, Extended]) -> Straight | None:
    """``body`` with the ``wanted`` reads at bent indices as reads of copies; None if there is none.

    Args:
        known: the copies that exist, by what they are; those made here are added.
    """
    table: dict[Expr, Expr] = {}
    copies: dict[Extended, None] = {}
    for read in reads_of(body):
        bends = bends_of(read) if wanted(read) else {}
        if not bends:
            continue
        tensor, indices = read.tensor, list(read.indices)
        for axis, bend in bends.items():
            key = tensor, axis, bend.extent, bend.pieces
            if key not in known:
                known[key] = extended(tensor, axis, bend)
            tensor = known[key]
            copies[tensor] = None
            indices[axis] = bend.position
        table[read] = Read(tensor, indices)
    return Straight(substitute(body, table), tuple(copies)) if table else None


def bends_of(read: Read) -> dict[int, Bend]:
    """The axes of the tensor that are read at bent indices; none where copies were larger than what is read."""
    found: dict[int, Bend] = {}
    for axis, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        bend = bend_of(index, extent) if isinstance(extent, int) else None
        if bend is not None:
            found[axis] = bend
    points = _points(read)
    few = bool(found) and _elements(read, found) <= _MOST_GROWTH * points
    return found if few and _growth(read, found) <= _MOST_MEMORY * (1 + points / _known(read)) else {}


def _elements(read: Read, bends: dict[int, Bend]) -> float:
    """Of the copy, as far as they follow from the axes that are bent and those of known extent."""
    return prod(
        bends[axis].extent if axis in bends else extent
        for axis, extent in enumerate(read.tensor.shape)
        if axis in bends or (isinstance(extent, int) and free_axes(read.indices[axis]))
    )


def _growth(read: Read, bends: dict[int, Bend]) -> float:
    """The elements of the copy for each of the tensor."""
    extents = {axis: read.tensor.shape[axis] for axis in bends}
    return prod(bends[axis].extent / max(n, 1) for axis, n in extents.items() if isinstance(n, int))


def _known(read: Read) -> int:
    """The elements of the tensor, as far as extents are known."""
    return max(prod(n for n in read.tensor.shape if isinstance(n, int)), 1)


def _points(read: Read) -> int:
    """How many points the axes of a read have, those of unknown extent counted once."""
    axes = dict.fromkeys(axis for index in read.indices for axis in free_axes(index))
    return prod(hi - lo + 1 for lo, hi in axis_bounds(axes).values())


def extended(tensor: Tensor, axis: int, bend: Bend) -> Extended:
    """``tensor`` with its elements along ``axis`` at the positions of ``bend``."""
    shape = (*tensor.shape[:axis], bend.extent, *tensor.shape[axis + 1 :])
    axes = new_axes(shape, axis_names_of(tensor))
    *before, last = (_element(tensor, axis, piece, axes) for piece in bend.pieces)
    body = last
    for piece, value in reversed(list(zip(bend.pieces, before, strict=False))):
        body = call(SELECT, axes[axis] < piece.stop, value, body)
    label = tensor.name if isinstance(tensor, Extended) else f"{tensor.name}_extended"
    return Extended(label, axes, body)


def _element(tensor: Tensor, axis: int, piece: Piece, axes: Sequence[Axis]) -> Expr:
    if piece.first is None:
        zero = 0 if dtypes.is_integer(tensor.dtype) else False if tensor.dtype == "bool" else 0.0
        return Const(zero, tensor.dtype)
    index = piece.step * (axes[axis] - piece.start) + piece.first
    return Read(tensor, (*axes[:axis], index, *axes[axis + 1 :]))

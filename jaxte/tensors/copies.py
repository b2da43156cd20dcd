"""Tensors with their ends continued: ``x[(i + k) % n]`` reads ``x_extended[i + k]``, which begins again where ``x`` ends.

A read at a piecewise affine index of several axes (:mod:`jaxte.sets.piecewise_affine`) is straight in a copy of the tensor that is as long as the form of axes has
values: the elements before the first and after the last stand there once, whatever reads them. What reads the copy is a window, a
convolution or a Toeplitz product like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Const, Expr, Read, call
from jaxte.lang.limits import MARGIN, MOST_LARGER
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.intervals import axis_bounds
from jaxte.sets.piecewise_affine import Piece, PiecewiseAffine, piecewise_affine
from jaxte.tensors.structure import axis_names_of
from jaxte.tensors.tensor import Compute, Tensor, new_axes


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
    """``body`` with the ``wanted`` reads at piecewise affine indices as reads of copies; None if there is none.

    Args:
        known: the copies that exist, by what they are; those made here are added.
    """
    table: dict[Expr, Expr] = {}
    copies: dict[Extended, None] = {}
    for read in reads_of(body):
        pieces = piecewise_indices(read) if wanted(read) else {}
        if not pieces:
            continue
        tensor, indices = read.tensor, list(read.indices)
        for axis, own in pieces.items():
            key = tensor, axis, own.extent, own.pieces
            if key not in known:
                known[key] = extended(tensor, axis, own)
            tensor = known[key]
            copies[tensor] = None
            indices[axis] = own.position
        table[read] = Read(tensor, indices)
    return Straight(substitute(body, table), tuple(copies)) if table else None


def piecewise_indices(read: Read) -> dict[int, PiecewiseAffine]:
    """The axes of the tensor that are read at piecewise affine indices; none where copies were larger than what is read."""
    found: dict[int, PiecewiseAffine] = {}
    for axis, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        own = piecewise_affine(index, extent) if isinstance(extent, int) else None
        if own is not None:
            found[axis] = own
    points = _points(read)
    few = bool(found) and _elements(read, found) <= MARGIN * points
    # The whole copy grows no more than this for each element that is read or exists, slices that are not read included.
    return found if few and _growth(read, found) <= MOST_LARGER * (1 + points / _known(read)) else {}


def _elements(read: Read, pieces: dict[int, PiecewiseAffine]) -> float:
    """Of the copy, as far as they follow from the axes that are read so and those of known extent."""
    return prod(
        pieces[axis].extent if axis in pieces else extent
        for axis, extent in enumerate(read.tensor.shape)
        if axis in pieces or (isinstance(extent, int) and free_axes(read.indices[axis]))
    )


def _growth(read: Read, pieces: dict[int, PiecewiseAffine]) -> float:
    """The elements of the copy for each of the tensor."""
    extents = {axis: read.tensor.shape[axis] for axis in pieces}
    return prod(pieces[axis].extent / max(n, 1) for axis, n in extents.items() if isinstance(n, int))


def _known(read: Read) -> int:
    """The elements of the tensor, as far as extents are known."""
    return max(prod(n for n in read.tensor.shape if isinstance(n, int)), 1)


def _points(read: Read) -> int:
    """How many points the axes of a read have, those of unknown extent counted once."""
    axes = dict.fromkeys(axis for index in read.indices for axis in free_axes(index))
    return prod(hi - lo + 1 for lo, hi in axis_bounds(axes).values())


def extended(tensor: Tensor, axis: int, index: PiecewiseAffine) -> Extended:
    """``tensor`` with its elements along ``axis`` at the positions of ``index``."""
    shape = (*tensor.shape[:axis], index.extent, *tensor.shape[axis + 1 :])
    axes = new_axes(shape, axis_names_of(tensor))
    *before, last = (_element(tensor, axis, piece, axes) for piece in index.pieces)
    body = last
    for piece, value in reversed(list(zip(index.pieces, before, strict=False))):
        body = call(SELECT, axes[axis] < piece.stop, value, body)
    label = tensor.name if isinstance(tensor, Extended) else f"{tensor.name}_extended"
    return Extended(label, axes, body)


def _element(tensor: Tensor, axis: int, piece: Piece, axes: Sequence[Axis]) -> Expr:
    if piece.first is None:
        zero = 0 if dtypes.is_integer(tensor.dtype) else False if tensor.dtype == "bool" else 0.0
        return Const(zero, tensor.dtype)
    index = piece.step * (axes[axis] - piece.start) + piece.first
    return Read(tensor, (*axes[:axis], index, *axes[axis + 1 :]))

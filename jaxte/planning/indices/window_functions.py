"""Functions of windows: a few operations on elements at the sum of two axes, among them sums over a few coordinates, as weights by distances of colours are.

    d[i, j] = sum over c below 3 of (x[i + j, c] - x[i, c])**2,   w[i, j] = exp(-d[i, j])

An array of one is as many times as large as its windows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import Axis, Reduce, as_expr
from jaxte.lang.graphs import among, reached
from jaxte.lang.limits import FEW, LONGEST_UNROLLED
from jaxte.lang.walk import free_axes, postorder, reads_data, reads_of
from jaxte.sets.intervals import known
from jaxte.tensors.tensor import Compute, Tensor

_DTYPES = ("float32", "float64")  # sums of narrower ones are kept in float32


def is_window_function(tensor: object, kinds: Sequence[type] = (Compute,)) -> bool:
    """Whether ``tensor`` is of one of ``kinds``, and a function of windows, or of such a function."""
    if not isinstance(tensor, Compute) or not _may_be(tensor, kinds):
        return False
    below = reached([tensor], lambda t: [s for s in t.inputs if isinstance(s, Compute) and _may_be(s, kinds)])
    return any(_reads_windows(t) for t in below)


def positions(node: Reduce) -> int | None:
    """Over how many positions ``node`` runs, where that is known."""
    extents = [known(as_expr(a.extent)) for a in node.axes]
    return None if None in extents else prod(e for e in extents if e is not None)


def _may_be(tensor: Compute, kinds: Sequence[type]) -> bool:
    """Whether ``tensor`` has an axis as short as those of windows, and takes a few operations."""
    if type(tensor) not in kinds or tensor.dtype not in _DTYPES or not any(map(_is_short, tensor.axes)):
        return False
    if tensor.override is not None or tensor.facts or reads_data(tensor.body):
        return False
    return all(_is_sum_of_few(n) for n in postorder(tensor.body) if isinstance(n, Reduce))


def _is_short(axis: Axis) -> bool:
    extent = known(as_expr(axis.extent))
    return extent is not None and extent <= LONGEST_UNROLLED


def _is_sum_of_few(node: Reduce) -> bool:
    count = positions(node)
    # Positions of a sum that is written out wherever it is computed.
    return node.reducer.name == "sum" and count is not None and count <= FEW


def _reads_windows(tensor: Tensor) -> bool:
    if not isinstance(tensor, Compute):
        return False
    indices = [index for read in reads_of(tensor.body) for index in read.indices]
    return any(sum(among(a, tensor.axes) for a in free_axes(index)) > 1 for index in indices)

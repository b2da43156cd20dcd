"""Sums of what is computed of elements at one position that mixes axes: what is summed along whole dimensions of it is summed first.

    sum over b, i of d[b, i, i - j + n - 1]    is    sum over i of s[i, i - j + n - 1]    with    s[i, k] = sum over b of d[b, i, k]

The gradient of a table of biases is such a sum: positions are turned into those of the table, by a mask or a copy of all of them, for each element of a batch. Summed
first, they are so once.
"""

from __future__ import annotations

from math import prod

from jaxte.lang.expr import TRUE, Axis, Read, Reduce
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import MARGIN
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.sets.intervals import extent, known
from jaxte.tensors.structure import PartialSum


def with_batches_first(node: Reduce, name: str) -> Reduce:
    """``node``, or a sum of the same elements of a partial sum, which is called after ``name``."""
    reads = reads_of(*node.exprs)
    if node.reducer.name != "sum" or not reads or node.exprs[0].dtype != node.dtype or node.exprs[0].reduces:
        return node
    read = reads[0]  # all that is computed is of elements at one position
    if not all(
        identical(r.indices, read.indices) and identical(r.tensor.shape, read.tensor.shape) for r in reads[1:]
    ):
        return node
    alone = {n: a for n, a in enumerate(read.indices) if isinstance(a, Axis) and _is_alone(a, n, read, node)}
    others = [i for n, i in enumerate(read.indices) if n not in alone]
    if not alone or not any(len(free_axes(i)) > 1 for i in others) or not _gains(read, alone, node):
        return node
    axes = [Axis(f"p{n}", 0, e) for n, e in enumerate(read.tensor.shape) if n not in alone]
    summed = {n: Axis(a.name, a.lo, a.hi, reduction=True) for n, a in alone.items()}
    kept = iter(axes)
    place = [summed[n] if n in summed else next(kept) for n in range(len(read.indices))]
    element = substitute(node.exprs[0], {r: Read(r.tensor, place) for r in reads})
    if any(not among(a, place) for a in free_axes(element)):
        return node
    label = "_".join(a.name for a in alone.values())
    total = Reduce(node.reducer, (element,), tuple(summed.values()), TRUE)
    left = tuple(a for a in node.axes if not among(a, list(alone.values())))
    part = PartialSum(f"{name}_over_{label}", axes, total)
    return Reduce(node.reducer, (Read(part, others),), left, node.where)


def _is_alone(axis: Axis, place: int, read: Read, node: Reduce) -> bool:
    """Whether ``axis`` is summed over, along the whole of its dimension, and nothing else depends on it."""
    others = [i for n, i in enumerate(read.indices) if n != place]
    size = read.tensor.shape[place]
    return (
        among(axis, node.axes)
        and known(axis.lo) == 0
        and isinstance(size, int)
        and known(axis.extent) == size
        and not any(depends_on(e, (axis,)) for e in (*others, node.where))
    )


def _gains(read: Read, alone: dict[int, Axis], node: Reduce) -> bool:
    """Whether the tensor and what is left have fewer points than the sum."""
    shape = read.tensor.shape
    if not all(isinstance(e, int) for e in shape) or any(
        known(a.extent) is None for a in (*free_axes(node), *node.axes)
    ):
        return False
    costs = intermediates()
    whole = prod(map(extent, (*free_axes(node), *node.axes)))
    kept = prod(e for n, e in enumerate(shape) if n not in alone and isinstance(e, int))
    first = prod(e for e in shape if isinstance(e, int)) + kept * costs.element + costs.loop
    return whole >= MARGIN * (first + whole / prod(extent(a) for a in alone.values()))

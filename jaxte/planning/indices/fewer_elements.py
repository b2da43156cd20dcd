"""Sums of which a few elements are read: these are computed, where they are read.

    whole[b, i] = sum over k of x[b, i + k] * w[k],   y[b, i] = whole[b, 4 * i]    is    y[b, i] = sum over k of x[b, 4 * i + k] * w[k]

A filter that is followed by a choice of every fourth sample is a strided one. Prefixes, whose elements are made of each other, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from jaxte.lang.expr import TRUE, Expr, Read, Reduce
from jaxte.lang.identity import among
from jaxte.lang.walk import nodes_outside, postorder, reads_of, substitute
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent
from jaxte.tensors.tensor import Compute, Tensor

_LEAST_GAIN = 1.3  # how many times more elements there are than are read


def read_in_part(order: Iterable[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, Compute]:
    """The sums among ``order`` of which fewer elements are read than there are, each outside of reductions."""
    order = list(order)
    asked: dict[Tensor, float] = {}
    for tensor in order:
        if not isinstance(tensor, Compute):
            continue
        points = prod(map(extent, tensor.axes))
        outside = {n for n in nodes_outside(tensor.body, (Reduce,)) if isinstance(n, Read)}
        for read in reads_of(tensor.body):
            plain = read in outside and all(map(is_index, read.indices))
            asked[read.tensor] = asked.get(read.tensor, 0) + (points if plain else float("inf"))
    return {
        t: t
        for t in order
        if isinstance(t, Compute)
        and t in asked
        and not among(t, outputs)
        and asked[t] * _LEAST_GAIN <= prod(map(extent, t.axes))
        and _is_sum(t)
    }


def _is_sum(tensor: Compute) -> bool:
    """Whether each element is sums over all of their axes (extrema have derivatives as tensors alone), and neither a part that planning made nor told how it is differentiated."""
    sums = [n for n in postorder(tensor.body) if isinstance(n, Reduce)]
    own = type(tensor) is Compute and tensor.part_of == tensor.name and tensor.override is None
    return own and bool(sums) and all(n.where is TRUE and n.reducer.name == "sum" for n in sums)


def where_read(body: Expr, known: dict[Tensor, Compute]) -> Expr:
    """``body`` with reads of the tensors ``known`` as what they are."""
    table: dict[Expr, Expr] = {}
    for read in reads_of(body):
        if (tensor := known.get(read.tensor)) is not None:
            table[read] = substitute(tensor.body, dict(zip(tensor.axes, read.indices, strict=True)))
    return substitute(body, table)

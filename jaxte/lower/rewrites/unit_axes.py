"""Output axes of extent 1, as reductions that keep their axes leave them.

Inside a reduction such an axis is 0, which leaves fewer dimensions to recognise and to broadcast; outside, a read at 0 of a
dimension of extent 1 is a read at the axis in the same place, so that the array is taken as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import ONE, ZERO, Axis, Expr, Read, Reduce
from jaxte.lang.identity import identical
from jaxte.lang.walk import nodes_outside, substitute


def at_unit_axes(body: Expr, axes: Sequence[Axis]) -> Expr:
    """``body`` at each point of ``axes``, written without needless axes of extent 1."""
    units: dict[Expr, Expr] = {axis: ZERO for axis in axes if axis.extent is ONE}
    if not units:
        return body
    table: dict[Expr, Expr] = {}
    for node in nodes_outside(body, (Read, Reduce)):
        if isinstance(node, Reduce):
            table[node] = substitute(node, units)
        elif isinstance(node, Read) and len(node.indices) == len(axes):
            table[node] = _kept(node, axes)
    return substitute(body, table)


def _kept(read: Read, axes: Sequence[Axis]) -> Expr:
    indices = [
        axis if axis.extent is ONE and index is ZERO and isinstance(extent, int) and extent == 1 else index
        for axis, index, extent in zip(axes, read.indices, read.tensor.shape, strict=True)
    ]
    return read if identical(indices, list(read.indices)) else Read(read.tensor, indices)

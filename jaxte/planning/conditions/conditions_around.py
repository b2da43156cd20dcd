"""Conditions on data under which the one reader of a sum reads its elements, if something in the sum may be infinite where they fail.

``s[c, i] = sum over k where N[i, k] of w[k] * sqrt(x[c, k])`` of ``select(M[c, i], s[c, i], 0)`` reads the elements ``x[c, k]`` for which some ``i`` fulfils both conditions.
As a product of matrices it would multiply the others by zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.data_conditions import with_conditions_around
from jaxte.lang.expr import ZERO, Axis, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.shapes import as_extent, same_extent
from jaxte.tensors.tensor import Compute, Tensor


def bodies_where_read(order: Sequence[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, Expr]:
    """The sums of ``order`` under the conditions of the one read of them that there is."""
    places: dict[Tensor, list[tuple[Compute, Read]]] = {}
    for reader in order:
        if isinstance(reader, Compute):
            for read in reads_of(reader.body):
                places.setdefault(read.tensor, []).append((reader, read))
    number = {tensor: n for n, tensor in enumerate(order)}
    found: dict[Tensor, Expr] = {}
    for tensor in order:
        own = places.get(tensor, ())
        if not isinstance(tensor, Compute) or among(tensor, outputs) or len(own) != 1:
            continue
        if isinstance(tensor.body, Reduce) and reads_of(tensor.body.where) and tensor.override is None:
            conditions = _conditions_at(tensor, *own[0], number)
            body = with_conditions_around(tensor.body, conditions)
            if body is not tensor.body:
                found[tensor] = body
    return found


def _conditions_at(tensor: Compute, reader: Compute, read: Read, number: dict[Tensor, int]) -> list[Expr]:
    """What holds of an element of ``tensor`` that ``read`` reads in the body of ``reader``, by what is computed before."""
    table: dict[Expr, Expr] = {}
    for index, own in zip(read.indices, tensor.axes, strict=True):
        if not (isinstance(index, Axis) and index.lo is ZERO and same_extent(as_extent(index.hi), own.hi)):
            return []
        table[index] = own
    if len(table) < len(tensor.axes):
        return []
    held = guards_of(reader.body, {read}).get(read, ())
    return [
        substitute(c, table)
        for c in held
        if all(a in table for a in free_axes(c))
        and all(number.get(r.tensor, -1) < number[tensor] for r in reads_of(c))
    ]

"""The elements of a long window as a tensor of their own: computed once for each position, not for each window that it is in.

    y[b, i] = max over k of abs(tanh(x[b, i - k]))   is   max over k of e[b, i - k]   with   e[b, p] = abs(tanh(x[b, p]))

What asks which elements are the largest then reads them, at as many places as there are positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import Axis, Call, Read, Reduce, conjuncts
from jaxte.lang.walk import free_axes, reads_of
from jaxte.planning.terms import Rewriting, Split, coordinates, term_bounds
from jaxte.sets.intervals import extent
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.parts import PartialSum

_FEWER = 4  # times fewer positions than elements of all windows
_LONGEST = 32  # positions of a window whose elements are compared where they are computed


def with_elements(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, a maximum or minimum at the points of ``axes``, of elements that are read, where windows share them."""
    element = node.exprs[0]
    if node.reducer.name not in ("max", "min") or node.reducer.arity > 1 or not isinstance(element, Call):
        return node
    if prod(map(extent, node.axes)) <= _LONGEST or any(
        reads_of(i) for r in reads_of(element) for i in r.indices
    ):
        return node
    split = Split((), [element])
    found = coordinates(split.terms, term_bounds(split.terms, conjuncts(node.where)), (*axes, *node.axes))
    if found is None or found.points * _FEWER > prod(map(extent, free_axes(element))):
        return node
    body = Rewriting(split, found, {})(element)
    places = [c.axis for c in found.order]
    if not set(free_axes(body)) <= set(places) or not reads_inside(places, body):
        return node
    read = Read(PartialSum(f"{name}_elements", places, body), [c.position for c in found.order])
    return Reduce(node.reducer, (read,), node.axes, node.where, node.position)

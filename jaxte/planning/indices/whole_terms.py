"""Reductions over what they depend on: the terms of their indices, where these take fewer values than their axes.

    r[i, j, k] = max over m of x[i + k, j + m]   is   M[i + k, j]   with   M[p, j] = max over m of x[p, j + m]

Each maximum is found once, not for each ``i`` and ``k`` of the same sum, as where the inner one of two reductions is a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import Axis, Expr, Read, Reduce
from jaxte.lang.walk import free_axes, reads_of
from jaxte.planning.terms import Rewriting, Split, coordinates, term_bounds
from jaxte.sets.intervals import extent
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.parts import PartialSum

_WORTH = 1.3  # how many times fewer values there have to be


def at_terms(node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str) -> Expr:
    """``node``, or a read of a tensor of all values that it takes.

    Args:
        node: a reduction over the points of ``axes`` where ``guards`` hold.
        name: what the tensor is called after.
    """
    if node.reducer.arity > 1 or reads_of(node.where):
        return node
    split = Split(node.axes, [*node.exprs, node.where])
    found = coordinates(split.terms, term_bounds(split.terms, guards), axes)
    if found is None or found.points * _WORTH > prod(map(extent, free_axes(node))):
        return node
    inner = {a: Axis(a.name, a.lo, a.hi, reduction=True) for a in node.axes}
    rewriting = Rewriting(split, found, inner)
    exprs = [rewriting(e) for e in node.exprs]
    own = Reduce(node.reducer, exprs, tuple(inner.values()), rewriting(node.where), node.position)
    places = [c.axis for c in found.order]
    if not set(free_axes(own)) <= set(places) or not reads_inside(places, own):
        return node  # a condition with a maximum of indices has terms of its own
    label = f"{name}_over_{'_'.join(a.name for a in node.axes)}"
    return Read(PartialSum(label, places, own), [c.position for c in found.order])

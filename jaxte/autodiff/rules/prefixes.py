"""Which reductions are cumulative: over all elements up to a position that moves with one axis of the output.

Results that are repeated: ``y[i, j] = prod over k of x[i, k]`` is the same for all ``j``, and so is its derivative.

What flows into the copies is added up before it meets the slope, ``g[i] = sum over j of H[i, j]``, so that the adjoint takes as many points as
the products and the head together have, not as many as all copies of the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jaxte.lang.expr import ZERO, Axis, Expr, Read, Reduce, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, substitute
from jaxte.sets.affine import from_linear, normal
from jaxte.sets.conditions import limit_of
from jaxte.sets.intervals import known
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.solving.elimination import mentions
from jaxte.tensors.tensor import Compute


@dataclass(frozen=True, slots=True)
class Prefix:
    """``tensor[.., j, ..] = reduce over the first at(j) + 1 elements``, ``element`` an expression of ``step``.

    Attributes:
        node: the reduction, its operands in terms of ``step``, which runs from 0.
        at: how far the prefix reaches, an expression of ``j``; below 0 it is empty.
        moving: ``j``.
    """

    node: Reduce
    step: Axis
    at: Expr
    moving: Axis


def as_prefix(tensor: Compute) -> Prefix | None:
    """The cumulative reduction that the body of ``tensor`` is, if it is one."""
    node = tensor.body
    if not isinstance(node, Reduce) or len(node.axes) != 1:
        return None
    (axis,) = node.axes
    found = _moving_limit(node, axis, tensor.axes)
    if found is None:
        return None
    (moving, end, forward), others = found
    step = Axis(axis.name, 0, axis.extent, reduction=True)
    position = step + axis.lo if forward else axis.hi - 1 - step
    at = end - axis.lo if forward else axis.hi - 1 - end
    table: dict[Expr, Expr] = {axis: normal(position)}
    exprs = [substitute(e, table) for e in node.exprs]
    where = conjunction([substitute(c, table) for c in others])
    # Compositions of maps do not commute: read backwards, the arguments of the combiner change places.
    reducer = node.reducer if forward else replace(node.reducer, lhs=node.reducer.rhs, rhs=node.reducer.lhs)
    return Prefix(Reduce(reducer, exprs, (step,), where, node.position), step, normal(at), moving)


Limit = tuple[Axis, Expr, bool]
# Reductions whose adjoints need no prefixes: a limit that moves with an axis of one value does not move.
_ALONE = ("sum", "max", "min")


def _moving_limit(node: Reduce, axis: Axis, outer: Sequence[Axis]) -> tuple[Limit, list[Expr]] | None:
    """The condition that moves with an axis that nothing else depends on, and the other conditions."""
    conditions = list(conjuncts(node.where))
    if node.reducer.name in _ALONE:
        outer = [a for a in outer if known(a.extent) != 1]
    for condition in conditions:
        limit = _limit(condition, axis, outer) if is_decidable(condition) else None
        others = [c for c in conditions if c is not condition]
        if limit is not None and not any(mentions(e, [limit[0]]) for e in (*node.exprs, *others)):
            return limit, others
    return None


def _limit(condition: Expr, axis: Axis, outer: Sequence[Axis]) -> Limit | None:
    """``(j, end, forward)`` for ``axis <= end(j)`` (forward) or ``axis >= end(j)``."""
    limit = limit_of(condition, axis)
    if limit is None or [abs(c) for c in limit.end.terms.values()] != [1]:
        return None
    (moving,) = limit.end.terms
    if not isinstance(moving, Axis) or not among(moving, outer):
        return None
    return moving, from_linear(limit.end), not limit.is_lower


def own_axes(tensor: Compute) -> list[Axis]:
    """The axes that the elements of ``tensor``, a reduction, differ along; with those of a size that is not known."""
    depends = free_axes(tensor.body)
    return [a for a in tensor.axes if a in depends or (known(a.extent) or 0) < 2]


def first_along_others(tensor: Compute) -> Read:
    """The element of ``tensor`` that stands for those along the axes that it is repeated along."""
    own = own_axes(tensor)
    at: list[Expr] = [a if among(a, own) else ZERO for a in tensor.axes]
    return Read(tensor, at)

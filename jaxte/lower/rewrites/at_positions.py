"""Reductions as sums over positions under conditions on these, whatever they are written with.

A choice between an element and zero is a condition, and ``x[lo(i) + k]`` at the ``k`` below ``hi(i) - lo(i)`` is ``x[u]`` between ``lo(i)`` and ``hi(i)``.
"""

from __future__ import annotations

from jaxte.algebra.product import multiplied, product_of
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, Reduce, cast, conjunction, conjuncts
from jaxte.lang.walk import free_axes, reads_of, rewrite, substitute
from jaxte.lower.match.index_terms import with_normal_indices
from jaxte.sets.affine import Linear, from_linear, linear
from jaxte.sets.conditions import tidy
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known, reach


def conditions_outside(node: Reduce) -> Reduce:
    """A sum of choices between an element and zero as one with a condition."""
    if node.reducer.name != "sum" or node.reducer.arity > 1:
        return node
    found = product_of(node.exprs[0], conjuncts(node.where))
    if len(found.guards) == len(conjuncts(node.where)) or any(f.guard for f in found.factors):
        return node
    expr = cast(multiplied(found.factors), node.exprs[0].dtype)
    return Reduce(node.reducer, (expr,), node.axes, conjunction(found.guards))


def over_positions(node: Reduce) -> Reduce | None:
    """``sum over k where lo(i) + k < hi(i) of x[lo(i) + k]`` over the positions ``lo(i) + k``; None where nothing is read so."""
    table: dict[Expr, Expr] = {}
    axes: list[Axis] = []
    conditions: list[Expr] = []
    for axis in node.axes:
        start = _start(node, axis)
        ends = None if start is None else reach(start)
        low, high = known(axis.lo), known(axis.hi)
        if start is None or ends is None or low is None or high is None:
            axes.append(axis)
            continue
        position = Axis(axis.name, low + ends[0], high + ends[1], reduction=True)
        table[axis] = position - from_linear(start)
        axes.append(position)
        conditions += [position >= from_linear(start) + low, position < from_linear(start) + high]
    if not table:
        return None
    exprs = [with_normal_indices(substitute(e, table)) for e in node.exprs]
    where = [tidy(substitute(c, table)) for c in conjuncts(node.where) if c is not TRUE]
    return Reduce(node.reducer, exprs, axes, conjunction([*conditions, *where]))


def _start(node: Reduce, axis: Axis) -> Linear | None:
    """What is added to ``axis`` in every index of it, if that has a quotient or a remainder of one axis and ``axis`` is read so only."""
    found: Linear | None = None
    for read in reads_of(*node.exprs):
        for index in read.indices:
            if axis not in free_axes(index):
                continue
            form = linear(index) if is_index(index) else Linear({})
            start = Linear(form.without(axis).terms)
            if form.coefficient(axis) != 1 or (found is not None and start.terms != found.terms):
                return None
            found = start
    if found is None or all(isinstance(a, Axis) for a in found.terms):
        return None
    bare = rewrite(node.exprs[0], lambda n: Const(0, n.dtype) if isinstance(n, Read) else n)
    moved = from_linear(found)
    return (
        None if axis in free_axes(bare) or axis in free_axes(moved) or len(free_axes(moved)) != 1 else found
    )

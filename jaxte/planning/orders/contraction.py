"""A sum of products, one axis after the other: which axes to sum first, and the tensors in between.

    sum over k, m of g[k] * g[m] * x[i + k, j + m]   is   sum over k of g[k] * T[i + k, j]
    with                                                  T[p, j] = sum over m of g[m] * x[p, j + m]

This is the elimination of variables that paths of einsum are made of, over index terms in place of axes (see :mod:`jaxte.planning.terms`): an intermediate
is a tensor over the terms that are left when the summed axes are gone. Products of arrays at plain axes are left to ``jnp.einsum``, which has
such a search of its own. Of 16-bit numbers, all sums but the last are kept in float32, so that the whole is rounded
once, but where they have units of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.algebra.product import Product, multiplied, product_of
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, cast, conjunction
from jaxte.lang.operators import EQUAL
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.planning.asked import intermediates
from jaxte.planning.orders.batches import with_batches_first
from jaxte.planning.orders.choices import summed_inside, with_shared_branches
from jaxte.planning.orders.contraction_search import Search, Step, Sum, remaining, tensor_of
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, reach
from jaxte.tensors.reducers import builtin_reducer, is_rounded, with_wide_reads
from jaxte.tensors.structure import PartialSum

_AGAIN = 4  # points at which one element is met that a sum of one factor is planned for
EXACT = ("float32", "float64", "complex64", "complex128")  # sums of others would be rounded once more


def planned_sum(
    node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str, parts: Sequence[PartialSum] = ()
) -> Expr:
    """``node``, or the same from partial sums, which are tensors of their own.

    Args:
        node: a reduction over the points of ``axes`` where ``guards`` hold.
        name: what the tensors are called after.
        parts: those of all sums of the graph.
    """
    if node.reducer.name != "sum" or not node.axes:
        return node
    if node.dtype in EXACT:
        return _planned(node, axes, guards, name, parts)
    wide = with_wide_reads(node)
    if wide is None or (intermediates().narrow and not is_rounded(node)):
        return node
    found = _planned(wide, axes, guards, name)
    return node if found is wide and not is_rounded(node) else cast(found, node.dtype)


def _planned(
    node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str, parts: Sequence[PartialSum] = ()
) -> Expr:
    node = with_batches_first(node, name)
    product = product_of(node.exprs[0], [node.where])
    shared = with_shared_branches(product)
    search, whole = Search(axes, guards, name, parts, as_read=True), _whole(shared, node)
    inside = search.step_over(whole, summed_inside(shared, node))
    if inside is not None:
        return _written(search, whole, [inside], node, name)
    if not _may_gain(product, node):
        return node
    search, whole = Search(axes, guards, name, parts), _whole(product, node)
    steps = search.best(whole)
    return _written(search, whole, steps, node, name) if steps else node


def _whole(product: Product, node: Reduce) -> Sum:
    return Sum(tuple(f for f in product.factors if not f.guard), node.axes, _conditions(product))


def _conditions(product: Product) -> tuple[Expr, ...]:
    return (*product.guards, *(f.expr for f in product.factors if f.guard))


def _may_gain(product: Product, node: Reduce) -> bool:
    """Whether there are several factors, with an index that is more than an axis, or one that meets the same elements again and again."""
    several = [f for f in product.factors if not f.guard and free_axes(f.expr)]
    if not several or any(map(_is_data_equation, _conditions(product))):
        return False
    indices = [i for f in several for read in reads_of(f.expr) for i in read.indices]
    if len(several) == 1:
        return any(_meets_again(i, node.axes) for i in indices)
    plain = all(isinstance(i, (Axis, Const)) for i in indices)
    return not (plain and not _conditions(product))


def _meets_again(index: Expr, axes: Sequence[Axis]) -> bool:
    """Whether ``index`` has the same value at many points of ``axes``, as ``i + k + l + m`` has."""
    own = [a for a in axes if depends_on(index, (a,))]
    ends = reach(linear(index)) if len(own) > 2 and is_index(index) else None
    others = reach(linear(substitute(index, {a: a.lo for a in own}))) if ends is not None else None
    if ends is None or others is None:
        return False
    values = ends[1] - ends[0] - (others[1] - others[0]) + 1
    return prod(map(extent, own)) >= _AGAIN * values


def _is_data_equation(condition: Expr) -> bool:
    """Whether ``condition`` says where a value goes: such a sum visits each value once, whatever its axes are."""
    return isinstance(condition, Call) and condition.op is EQUAL and bool(reads_of(condition))


def _written(search: Search, whole: Sum, steps: Sequence[Step], node: Reduce, name: str) -> Expr:
    """``whole`` by ``steps``; as it was where an intermediate would read what is not there."""
    current = whole
    for planned in steps:
        step = search.step_over(current, planned.own.axes)
        if step is None or not search.may_leave(current, step.own):
            return node
        part = tensor_of(step, node.dtype, name) if step.known is None else step.known
        if part is None:
            return node
        current = remaining(current, step, Read(part, [c.position for c in step.coordinates.order]))
    if not current.axes:
        value = multiplied(current.factors, current.conditions)
    else:
        body = multiplied(current.factors)
        value = Reduce(
            builtin_reducer("sum", node.dtype),
            (cast(body, node.dtype),),
            current.axes,
            conjunction(current.conditions),
        )
    return value if value.dtype == node.dtype and not value.weak else cast(value, node.dtype)

"""Elements that are computed once, and only those that are read.

    whole[b, i] = sum over k of x[b, i + k] * w[k],   y[b, i] = whole[b, 4 * i]    is    y[b, i] = sum over k of x[b, 4 * i + k] * w[k]
    r[i, j, k] = max over m of x[i + k, j + m]     is   M[i + k, j]                with  M[p, j] = max over m of x[p, j + m]
    y[b, i] = max over k of abs(tanh(x[b, i - k])) is   max over k of e[b, i - k]  with  e[b, p] = abs(tanh(x[b, p]))
    y[i, s] = sum over a of abs(x[i + a] - x[i + a + s]) is   sum over a of d[i + a, s] with  d[p, s] = abs(x[p] - x[p + s])

A filter that is followed by a choice of every fourth sample is a strided one; prefixes, whose elements are made of each other, stay. A reduction whose
terms take fewer values than their axes is found once for each value. The elements of a long window are computed once for each position, not for each
window that the position is in, and what asks which of them are the largest reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from jaxte.algebra.simplify import simplify_reads
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Expr, Read, Reduce, conjuncts
from jaxte.lang.graphs import among, identical, place_of
from jaxte.lang.limits import FEWER, HALVED, LONGEST_UNROLLED, MARGIN
from jaxte.lang.walk import free_axes, nodes_outside, reads_of, reductions, substitute
from jaxte.planning.terms import Rewriting, Split, coordinates, term_bounds, wraps
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.structure import PartialSum
from jaxte.tensors.tensor import Compute, Tensor


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
        and asked[t] * MARGIN <= prod(map(extent, t.axes))
        and _is_sum(t)
    }


def _is_sum(tensor: Compute) -> bool:
    """Whether each element is sums over all of their axes (extrema have derivatives as tensors alone), and neither a part that planning made nor told how it is differentiated."""
    sums = reductions(tensor.body)
    own = type(tensor) is Compute and tensor.part_of == tensor.name and tensor.override is None
    return own and bool(sums) and all(n.where is TRUE and n.is_sum for n in sums)


def where_read(body: Expr, known: dict[Tensor, Compute]) -> Expr:
    """``body`` with reads of the tensors ``known`` as what they are."""
    table: dict[Expr, Expr] = {}
    for read in reads_of(body):
        if (tensor := known.get(read.tensor)) is not None:
            table[read] = tensor.element(read.indices)
    return substitute(body, table)


def at_terms(node: Reduce, axes: Sequence[Axis], guards: Sequence[Expr], name: str) -> Expr:
    """``node``, or a read of a tensor of all values that it takes.

    Args:
        node: a reduction over the points of ``axes`` where ``guards`` hold.
        name: what the tensor is called after.
    """
    if node.reducer.arity > 1 or reads_of(node.where):
        return node
    split = Split(node.axes, [*node.exprs, node.where])
    bounds, points = term_bounds(split.terms, guards), prod(map(extent, free_axes(node)))
    found = coordinates(split.terms, bounds, axes)
    if found is not None and found.points * MARGIN > points and any(map(wraps, split.terms)):
        # sums of more terms than there are, at plain positions, which are turned when they are found
        turned = coordinates(split.terms, bounds, axes, turned=True)
        found = turned if points <= prod(map(extent, node.axes)) else found
        if found is None or not any(map(wraps, found.by_term)):
            return node
    elif found is None or found.points * MARGIN > points:
        return node
    inner = {a: Axis(a.name, a.lo, a.hi, reduction=True) for a in node.axes}
    rewriting = Rewriting(split, found, inner)
    exprs = [rewriting(e) for e in node.exprs]
    own = node.changed(exprs=exprs, axes=tuple(inner.values()), where=rewriting(node.where))
    places = [c.axis for c in found.order]
    if not set(free_axes(own)) <= set(places) or not reads_inside(places, own):
        return node  # a condition with a maximum of indices has terms of its own
    label = f"{name}_over_{'_'.join(a.name for a in node.axes)}"
    return Read(PartialSum(label, places, own), [c.position for c in found.order])


def _is_on_diagonals(element: Expr) -> bool:
    """Whether ``element`` is made of several reads, some of which are over all of its axes: arrays askew, and no product of matrices."""
    reads, axes = reads_of(element), set(free_axes(element))
    return sum(len(r.indices) > 1 and axes <= set(free_axes(r)) for r in reads) > 1


def with_elements(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, a maximum or minimum at the points of ``axes``, or a sum along diagonals or of what two windows make, of elements that are read, where windows share them."""
    element = node.exprs[0]
    if (
        node.reducer.name not in ("max", "min", "sum")
        or node.reducer.arity > 1
        or not isinstance(element, Call)
    ):
        return node
    if node.is_sum and any(len(free_axes(index)) > 2 for read in reads_of(element) for index in read.indices):
        return _summed_over_windows(node, axes, name)
    if prod(map(extent, node.axes)) <= LONGEST_UNROLLED or any(
        reads_of(i) for r in reads_of(element) for i in r.indices
    ):
        return node
    split = Split((), [element])
    found = coordinates(split.terms, term_bounds(split.terms, conjuncts(node.where)), (*axes, *node.axes))
    fewer = FEWER if not node.is_sum else MARGIN
    if found is None or found.points * fewer > prod(map(extent, free_axes(element))):
        return node
    askew = len(found.order) == len(free_axes(element)) and _is_on_diagonals(element)
    if node.is_sum and not askew:
        return node  # sums over windows have steps of their own
    body = Rewriting(split, found, {})(element)
    reads = sorted(reads_of(body), key=lambda r: -len(free_axes(r)))  # of positions alone there may be none
    # in the first one's order
    met = [a for first in reads[:1] for index in first.indices for a in free_axes(index)]
    order = sorted(found.order, key=lambda c: place_of(c.axis, met) if among(c.axis, met) else len(met))
    places = [c.axis for c in order]
    if not set(free_axes(body)) <= set(places) or not reads_inside(places, body):
        return node
    read = Read(PartialSum(f"{name}_elements", places, body), [c.position for c in order])
    return node.changed(exprs=(read,))


def _summed_over_windows(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, a sum over windows, of functions of elements that are read: ``d[i + a, s] ** 2``, with ``d[p, s] = x[p] - x[p + s]``."""
    element = _where_reads_meet(node.exprs[0])
    along = _moved_alike(element, node.axes, axes)
    if (
        not along
        or not isinstance(element, Call)
        or not free_axes(node.where).keys().isdisjoint((*along, *along.values()))
    ):
        return node
    table: dict[Expr, Expr] = {}
    places: dict[
        Axis, tuple[Axis, Expr]
    ] = {}  # the axes of the elements, and where on them what is summed stands
    for axis in free_axes(element):
        if axis in along:
            continue
        other = next((o for o, own in along.items() if own is axis), None)
        start, count, at = axis.lo, axis.extent, linear(axis)
        if other is not None:
            start, count, at = start + other.lo, count + other.extent - 1, at + linear(other)
            table[other] = ZERO
        own = Axis(axis.name, 0, count)
        places[axis] = own, from_linear(at - linear(start))
        table[axis] = own + start
    places = {a: places[a] for a in (*axes, *node.axes) if a in places}
    held = prod(extent(own) for own, _ in places.values())
    if held * HALVED > prod(map(extent, free_axes(element))) or held > HALVED * prod(map(extent, axes)):
        return node
    body = simplify_reads(substitute(element, table))
    elements = PartialSum(f"{name}_elements", [a for a, _ in places.values()], body)
    read = Read(elements, [position for _, position in places.values()])
    expr = substitute(node.exprs[0], {element: read})
    return node.changed(exprs=(expr,))


def _where_reads_meet(expr: Expr) -> Expr:
    """What all reads of ``expr`` are in, as far inside as there is such an operation."""
    while isinstance(expr, Call):
        reading = [child for child in expr.children if reads_of(child)]
        if len(reading) != 1:
            break
        expr = reading[0]
    return expr


def _moved_alike(element: Expr, reduced: Sequence[Axis], axes: Sequence[Axis]) -> dict[Axis, Axis]:
    """For each of the ``reduced`` axes: the one of ``axes`` that moves all of ``element`` as it does; none where one of them has no such axis."""
    terms = Split((), [element]).terms
    if any(isinstance(atom, Call) for term in terms for atom in term.form.terms):
        return {}
    found: dict[Axis, Axis] = {}
    for axis in reduced:
        moves = [term.form.terms.get(axis, 0) for term in terms]
        for own in axes:
            if not among(own, found.values()) and identical([t.form.terms.get(own, 0) for t in terms], moves):
                found[axis] = own
                break
    return found if len(found) == len(reduced) else {}

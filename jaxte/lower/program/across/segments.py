"""Sums between bounds that move with the output, as those of adaptive pools: axis by axis, and in pieces with fixed bounds.

    y[b, i, j] = sum over u, v where lo(i) <= u < hi(i) and lo(j) <= v < hi(j) of x[b, u, v]

Taken at once, this is a mask over four axes. The conditions on ``v`` do not know ``i``, so the sum over ``v`` is a tensor of its own over
``(b, u, j)``, made once for all ``i``. Of a few ``j``, each has its bounds: the sum is one of a slice there. So each element is read
once for each segment that it is in, and none is read to be masked. The adjoint is a sum of the same kind over ``i`` and ``j``.

A choice between an element and zero is a condition, whatever it is written with, and ``x[lo(i) + k]`` at the ``k`` below ``hi(i) - lo(i)`` is ``x[u]``
between ``lo(i)`` and ``hi(i)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.data_conditions import with_conditions_around
from jaxte.algebra.product import conditions_outside
from jaxte.lang.dtypes import NARROW
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, Reduce, cast, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.limits import HALVED
from jaxte.lang.walk import free_axes, outermost, postorder, reads_of, rewrite, substitute
from jaxte.lower.arrays.products import OPS
from jaxte.lower.cost.work import points
from jaxte.lower.match.index_terms import with_normal_indices
from jaxte.lower.program.across.bounds_in_pieces import groups_of, in_pieces
from jaxte.lower.tiles.tiling import Tiling
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.conditions import tidy
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known, reach
from jaxte.sets.linear import Linear
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.reducers import builtin_reducer, with_wide_reads
from jaxte.tensors.tensor import Compute, Tensor


def with_segments(planned: Tiling) -> Tiling:
    """``planned`` with such sums taken apart; their inner sums come before them."""

    def rule(tensor: Compute) -> tuple[Sequence[Tensor], Expr]:
        inner: list[Compute] = []
        if not tensor.body.reduces:
            return inner, tensor.body
        body = _taken_apart(tensor.name, tensor.body, inner)
        for part in inner:
            part.as_part_of(tensor.part_of)
        return inner, body

    return planned.with_bodies(rule)


def _taken_apart(name: str, body: Expr, inner: list[Compute]) -> Expr:
    """``body`` with its reductions axis by axis and in pieces; the tensors that it reads then are added to ``inner``."""
    table: dict[Expr, Expr] = {}
    sums = outermost(body)
    around = {} if isinstance(body, Reduce) else guards_of(body, {*sums})
    for node in sums:
        wide = with_wide_reads(node)  # what is between two sums is not rounded
        whole = with_conditions_around(node if wide is None else wide, around.get(node, ()))
        found = _apart(name, conditions_outside(whole), inner)
        if found is not None:
            table[node] = found if wide is None else cast(found, node.dtype)
    return substitute(body, table)


def _apart(name: str, node: Reduce, inner: list[Compute]) -> Expr | None:
    found = _in_parts(name, node, inner) if _is_simple(node) else None
    if found is None and (moved := over_positions(node)) is not None and _is_simple(moved):
        found = _in_slices(name, moved, inner)
    return found


def _in_parts(name: str, node: Reduce, inner: list[Compute]) -> Expr | None:
    """``node`` axis by axis, in pieces where it has some; None where it is neither."""
    outer = _axis_by_axis(name, node, inner)
    pieces = in_pieces(outer)
    return pieces if pieces is not None or outer is node else outer


def _in_slices(name: str, node: Reduce, inner: list[Compute]) -> Expr | None:
    """The same if no condition is left: over positions there are many points that do not count."""
    own: list[Compute] = []
    found = _in_parts(name, node, own)
    every = [] if found is None else [found, *(tensor.body for tensor in own)]
    if not every or any(isinstance(n, Reduce) and n.where is not TRUE for n in postorder(*every)):
        return None
    inner += own
    return found


def _is_simple(node: Reduce) -> bool:
    if node.reducer.name not in OPS or node.reducer.arity > 1 or node.where is TRUE:
        return False
    if node.dtype in NARROW and node.reducer.name in ("sum", "prod"):
        return False  # of sums of sums, and of products
    return all(known(a.lo) is not None and known(a.hi) is not None for a in (*node.axes, *free_axes(node)))


# --- axis by axis


def _axis_by_axis(name: str, node: Reduce, inner: list[Compute]) -> Reduce:
    """``node`` over some of its axes, reading tensors that are reduced over the others, as long as that is worth it."""
    while (best := _best_split(node)) is not None:
        own, conditions = best
        outer = _axes_of(node, own, conditions)
        left = [c for c in conjuncts(node.where) if not among(c, conditions)]
        part = node.changed(axes=own, where=conjunction(conditions))
        part = _counting(name, part, left, outer, inner)
        fresh = {a: Axis(a.name, 0, known(a.extent) or 0) for a in outer}
        at = {a: f + a.lo for a, f in fresh.items()}
        moved = substitute(part, at)
        assert isinstance(moved, Reduce)
        pieces = in_pieces(moved)
        tensor = Compute(f"{name}_{own[0].name}", list(fresh.values()), moved if pieces is None else pieces)
        inner.append(tensor)
        read = Read(tensor, [a - a.lo for a in outer])
        rest = [a for a in node.axes if not among(a, own)]
        node = node.changed(exprs=(read,), axes=rest, where=conjunction(left))
    return node


def _counting(
    name: str, part: Reduce, left: Sequence[Expr], outer: Sequence[Axis], inner: list[Compute]
) -> Reduce:
    """``part`` where it counts, at points of which the conditions that are ``left`` hold, if something in it may be infinite elsewhere.

    What they say of other axes than ``outer`` is a tensor of its own: whether they hold anywhere.
    """
    more = conjuncts(with_conditions_around(part, left).where)
    moving = [c for c in more if not all(among(a, (*outer, *part.axes)) for a in free_axes(c))]
    if moving:
        condition = conjunction(moving)
        kept = [a for a in free_axes(condition) if among(a, outer)]
        rest = {
            a: Axis(a.name, a.lo, a.hi, reduction=True) for a in free_axes(condition) if not among(a, kept)
        }
        fresh = {a: Axis(a.name, 0, known(a.extent) or 0) for a in kept}
        there = substitute(condition, {**rest, **{a: f + a.lo for a, f in fresh.items()}})
        body = Reduce(builtin_reducer("any", "bool"), (there,), list(rest.values()), TRUE)
        inner.append(Compute(f"{name}_counts", list(fresh.values()), body))
        more = [c for c in more if not among(c, moving)] + [Read(inner[-1], [a - a.lo for a in kept])]
    return part.changed(where=conjunction(more))


def _best_split(node: Reduce) -> tuple[list[Axis], list[Expr]] | None:
    """Some axes of ``node`` with all conditions on them, such that reducing over these first takes the fewest points."""
    groups = groups_of(node)
    whole = points(dict.fromkeys([*free_axes(node), *node.axes]))
    found: list[tuple[int, int]] = []
    for number, (own, conditions) in enumerate(groups):
        outer = _axes_of(node, own, conditions)
        rest = [a for a in node.axes if not among(a, own)]
        if conditions and rest:
            found.append((points([*outer, *own]) + points([*free_axes(node), *rest]), number))
    if not found or min(found)[0] * HALVED > whole:
        return None
    return groups[min(found)[1]]


def _axes_of(node: Reduce, own: Sequence[Axis], conditions: Sequence[Expr]) -> list[Axis]:
    """What the reduction over ``own`` alone depends on: what their bounds move with stands where they stood, so that nothing is transposed."""
    read = list(dict.fromkeys(a for e in node.exprs for a in free_axes(e)))
    bounds = [a for c in conditions for a in free_axes(c)]
    place = next((n for n, a in enumerate(read) if among(a, own)), len(read))
    found = dict.fromkeys([*read[:place], *(a for a in bounds if not among(a, read)), *read[place:], *bounds])
    return [a for a in found if not among(a, own)]


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
    return node.changed(exprs=exprs, axes=axes, where=conjunction([*conditions, *where]))


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


# --- in pieces

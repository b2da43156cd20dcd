"""Graphs whose sums are planned: each tensor that is a costly sum of products is made of partial sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jaxte.lang.budget import bounded
from jaxte.lang.expr import TRUE, Expr, Read, Reduce, call, conjuncts
from jaxte.lang.operators import AND, SELECT
from jaxte.lang.walk import postorder, reads_of, rewrite, substitute
from jaxte.meaning.points import points
from jaxte.planning.conditions.bent_choices import with_bent_reads
from jaxte.planning.conditions.counted_points import at_counted_points
from jaxte.planning.conditions.data_equations import with_data_equations
from jaxte.planning.conditions.narrow_reads import with_narrow_reads
from jaxte.planning.conditions.plain_conditions import with_plain_conditions
from jaxte.planning.conditions.prefix_differences import window_bodies
from jaxte.planning.indices.digits import with_whole_axes
from jaxte.planning.indices.fewer_axes import with_fewer_axes
from jaxte.planning.indices.fewer_elements import read_in_part, where_read
from jaxte.planning.indices.known import Known, with_known
from jaxte.planning.indices.lines import with_lines
from jaxte.planning.indices.number_digits import Digits, over_digits, with_digit_axes
from jaxte.planning.indices.pairs import with_pairs
from jaxte.planning.indices.read_through import layouts, read_through
from jaxte.planning.indices.repeats import with_repeats_counted
from jaxte.planning.indices.rows import with_rows
from jaxte.planning.indices.shaped import with_shapes
from jaxte.planning.indices.strides import with_frames
from jaxte.planning.indices.whole_terms import at_terms
from jaxte.planning.orders.contraction import planned_sum
from jaxte.planning.orders.distribution import added, distributed
from jaxte.planning.orders.geometric import in_blocks
from jaxte.tensors.compute import guards_of
from jaxte.tensors.copies import Extended, with_copies
from jaxte.tensors.graph import topological_order
from jaxte.tensors.parts import PartialSum
from jaxte.tensors.tensor import Compute, Placeholder, Tensor

_MOST_POINTS = 1.25  # of a plan with copies, for each point of what it is a plan of


def planned_body(tensor: Compute, copies: dict[object, Extended] | None = None) -> Expr:
    """The body of ``tensor`` with each of its sums planned; the same node where that gains nothing.

    A sum with reads that wrap, or are held or reflected at the ends of a tensor, is planned where these are reads of a copy with continued ends,
    ``x_extended[i + k]`` for ``x[(i + k) % n]``.

    Args:
        copies: those that exist, which grows.
    """
    body = _over_digits(tensor, copies)
    _mark_parts(tensor, tensor.body, body)
    return body


def _over_digits(tensor: Compute, copies: dict[object, Extended] | None) -> Expr:
    """The planned body of ``tensor``, over the digits of its axes where many of them are read."""
    body = with_digit_axes(tensor.body)
    own = tensor if body is tensor.body else with_body(tensor, body)
    found = over_digits(own)
    if found is None:
        shaped = with_shapes(own.axes, own.body)
        return _better_body(own if shaped is own.body else with_body(own, shaped), copies)
    part, element = found
    shaped = with_shapes(part.axes, part.body)
    better = _better_body(part if shaped is part.body else with_body(part, shaped), copies)
    return element if better is part.body else Read(part.over(part.axes, better), element.indices)


def _mark_parts(tensor: Compute, old: Expr, new: Expr) -> None:
    """Says of the tensors in ``new``, which takes the place of ``old``, that they are parts of ``tensor``."""
    if new is old:
        return
    known = {read.tensor for read in reads_of(old)}
    order = topological_order(
        [read.tensor for read in reads_of(new)], lambda t: () if t in known else t.inputs
    )
    for part in order:
        if isinstance(part, Compute) and part not in known and part.part_of == part.name:
            part.as_part_of(tensor.part_of)


def _better_body(tensor: Compute, copies: dict[object, Extended] | None) -> Expr:
    """The body of ``tensor`` with its sums planned, over copies with continued ends where that is worth it."""
    sums = _outermost(tensor.body)
    if not sums:
        return tensor.body
    exist = {} if copies is None else copies
    own = dict(exist)
    # a remainder that is a digit of a sum's own axes does not wrap
    digits = substitute(tensor.body, {n: with_whole_axes(n) for n in sums if n.reducer.name == "sum"})
    straight = with_copies(digits, lambda read: True, own)
    if straight is not None:
        body = _planned(tensor, straight.body, _outermost(straight.body))
        if body is not straight.body and _is_worth(tensor, body, exist.values()):
            exist |= own
            return body
    return _planned(tensor, tensor.body, sums)


def _is_worth(tensor: Compute, body: Expr, exist: Iterable[Tensor]) -> bool:
    """Whether ``tensor`` takes about as many points as before with another ``body``, the copies that this reads included."""
    known = {*tensor.inputs, *exist}
    new = Compute(tensor.name, tensor.axes, body)
    order = topological_order([new], lambda t: () if t in known else t.inputs)
    found = sum(points(t) for t in order if isinstance(t, Compute) and t not in known)
    return found <= _MOST_POINTS * points(tensor)


def _planned(tensor: Compute, body: Expr, sums: Sequence[Reduce]) -> Expr:
    """``body``, of the elements of ``tensor``, with ``sums`` planned."""
    guards = {} if isinstance(body, Reduce) else guards_of(tensor.axes, body, set(sums))
    table: dict[Expr, Expr] = {}
    for node in sums:
        new = _sum_planned(tensor, node, guards.get(node, []))
        if new is not node:
            table[node] = new
    return substitute(body, table)


def _sum_planned(tensor: Compute, node: Reduce, guards: Sequence[Expr]) -> Expr:
    """``node``, a reduction in the body of ``tensor`` where ``guards`` hold, or the same by fewer points or partial sums."""
    outside, solved = with_data_equations(node, tensor.axes)
    if solved is not node:
        return _where(outside, solved, node)
    outside, positions = at_counted_points(node)
    if not isinstance(positions, Reduce):
        return _where(outside, positions, node)
    new = in_blocks(positions, tensor.axes, tensor.name)
    if new is None:
        whole = with_lines(positions, tensor.name)
        parts = [with_frames(part, tensor.axes) for part in distributed(whole, tensor.axes)]
        known = [*guards, *conjuncts(outside)]
        new = added([planned_sum(part, tensor.axes, known, tensor.name) for part in parts])
        if isinstance(new, Reduce) and not known:
            new = at_terms(new, tensor.axes, known, tensor.name)
    return _where(outside, new, node)


def _where(condition: Expr, value: Expr, node: Reduce) -> Expr:
    """``value`` where ``condition`` holds, and what ``node`` is of no points elsewhere.

    A sum is differentiated wherever it stands; other reductions are where they are all of a body, so that their condition goes inside.
    """
    if condition is TRUE:
        return value
    if isinstance(value, Reduce) and value.reducer is node.reducer and value.reducer.name != "sum":
        where = call(AND, condition, value.where)
        return Reduce(value.reducer, value.exprs, value.axes, where, value.position)
    return call(SELECT, condition, value, node.reducer.identity[0])


def with_body(tensor: Compute, body: Expr) -> Compute:
    """``tensor`` with another body of the same values."""
    made = tensor.renewed(body)
    made.with_override(tensor.override)
    return made


def _outermost(body: Expr) -> list[Reduce]:
    """The sums in ``body`` that stand in no other reduction."""
    inner = {
        below
        for node in postorder(body)
        if isinstance(node, Reduce)
        for below in postorder(*node.children)
        if isinstance(below, Reduce)
    }
    return [n for n in postorder(body) if isinstance(n, Reduce) and n not in inner]


def planned(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """``outputs`` with the sums in all tensors that they need planned.

    A tensor of which only a read of a partial sum is left, ``y[i, j, k] = y_over_m[i + k, j]``, is read through.
    """
    order = topological_order(outputs)
    if any(type(t) not in (Compute, Placeholder) and t.inputs for t in order):  # others know their tensors
        return tuple(outputs)
    with bounded(len(order)):
        return _planned_in_order(order, outputs)


def _planned_in_order(order: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    new: dict[Tensor, Compute] = {}
    copies: dict[object, Extended] = {}
    windows = window_bodies(order, outputs)
    few, views = read_in_part(order, outputs), layouts(order, outputs)
    for tensor in order:
        if not isinstance(tensor, Compute):
            continue
        body = read_through(where_read(windows.get(tensor, tensor.body), few), views)
        body = with_repeats_counted(body)
        body = _reading(body, new) if any(r.tensor in new for r in reads_of(body)) else body
        own = _with(tensor, tensor, body)
        body = with_narrow_reads(with_plain_conditions(own.body))
        own = _with(own, tensor, with_rows(with_bent_reads(body)))
        own = _with(own, tensor, with_known(own))
        own = _with(own, tensor, with_fewer_axes(own))
        own = _with(own, tensor, planned_body(own, copies))
        own = _with(own, tensor, with_pairs(own))
        if own is not tensor:
            new[tensor] = own
    return tuple(new.get(t, t) for t in outputs)


def _with(own: Compute, tensor: Compute, body: Expr) -> Compute:
    """``own``, which stands for ``tensor``, with another ``body``, the tensors in which are parts of it."""
    if body is own.body:
        return own
    _mark_parts(tensor, own.body, body)
    return with_body(tensor, body)


def _reading(body: Expr, new: Mapping[Tensor, Compute]) -> Expr:
    """``body`` with the new tensors in place of the old ones."""

    def rule(node: Expr) -> Expr:
        return (
            _element(new[node.tensor], node.indices)
            if isinstance(node, Read) and node.tensor in new
            else node
        )

    return rewrite(body, rule)


def _element(tensor: Compute, indices: Sequence[Expr]) -> Expr:
    """The element of ``tensor`` at ``indices``: of the tensor that it is a read of where planning made that, unless its derivative is given."""
    part = tensor.body
    if (
        isinstance(part, Read)
        and isinstance(part.tensor, (PartialSum, Known, Digits))
        and tensor.override is None
    ):
        return substitute(part, dict(zip(tensor.axes, indices, strict=True)))
    return Read(tensor, indices)

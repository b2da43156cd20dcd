"""Reads at positions that are data: gathers, where out of range is NaN (0 for integers), also below zero; and their forms, with what each costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.lang import dtypes
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.operators import ADD, AND, LESS, MAXIMUM, MINIMUM, SELECT, SUBTRACT
from jaxte.lang.text import text
from jaxte.lang.walk import postorder, reads_of
from jaxte.lower.arrays.data import CLIP, FILL, IN_BOUNDS, Gather
from jaxte.lower.arrays.elementwise import Cast, Kept, Name, Typed, number, size
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import Spread
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import broadcast
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import points
from jaxte.lower.forms.data.recognise import is_known_inside
from jaxte.lower.rules.gather_forms import (
    CHOSEN,
    GATHER,
    ONE_HOT,
    Place,
    chosen_value,
    form_of,
    one_hot_value,
    outside_element,
)
from jaxte.lower.views.affine import reorder
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.intervals import constant, dims_of, index_stays_in, known, nonnegative

_OF_INTEGERS = (ADD, SUBTRACT, MINIMUM, MAXIMUM)  # which take a gather's loop no time

# an index, the same where it is no data, and the extent of its dimension
Limit = tuple[Expr, Expr | None, Expr | int]


def gather_value(body: Body, node: Expr, scope: Scope) -> Task:
    """``X[I[i], j]`` as an indexed read; dimensions read in order stay slices, the others become index arrays."""
    assert isinstance(node, Read)
    shape = [as_expr(e) for e in node.tensor.shape]
    has_data = any(reads_of(i) for i in node.indices)
    if any(known(extent) == 0 for extent in shape):  # JAX gathers no element from nothing
        nothing = Typed(number(outside_element(node, has_data)), node.dtype)
        return Value(nothing, (), (node.dtype, False))
    affine = [None if reads_of(i) else scope.index(i) for i in node.indices]
    arrays: list[Value | None] = []
    for index, own, extent in zip(node.indices, affine, shape, strict=True):
        whole = own is not None and isinstance(own, Axis) and own.hi is extent
        if whole and sum(a is not None and among(own, dims_of(a)) for a in affine) == 1:
            arrays.append(None)
        elif own is not None:
            arrays.append(body.index_value(own, scope, None))
        else:
            arrays.append((yield from _position(body, index, scope)))
    taken = {d for a in arrays if a is not None for d in a.dims}
    for n, own in enumerate(affine):
        if arrays[n] is None and own in taken:
            assert own is not None
            arrays[n] = body.index_value(own, scope, None)
            taken |= {own}  # type: ignore[arg-type]
    return (yield from _indexed(body, node, arrays, affine, scope))


def _position(body: Body, index: Expr, scope: Scope) -> Task:
    """The values of ``index``, a position that is data: where a gather would compute it in its own loop, what is rounded in it is an array of its own.

    Neighbours of it, held in range or not, are computed from that: bilinear samples at all corners read one array for each dimension.
    """
    if not body.policy.facts.computes_positions or body.in_tiles or not _is_rounded(index):
        return (yield index, scope)
    if isinstance(index, Call) and index.op in _OF_INTEGERS:
        operands = []
        for operand in index.args:
            operands.append((yield from _position(body, operand, scope)))
        return body.combine(index.op, operands, (index.dtype, False), scope)
    value = yield index, scope
    if value.literal or not value.dims:
        return value
    return body.named(replace(value, code=Kept(value.code, "apart")))


def _is_rounded(index: Expr) -> bool:
    """Whether ``index`` is an integer made of numbers that are none."""
    return any(
        isinstance(n, Call) and n.op.name == "cast" and dtypes.is_inexact(n.args[0].dtype)
        for n in postorder(index)
    )


def _indexed(
    body: Body, node: Read, arrays: list[Value | None], affine: list[Expr | None], scope: Scope
) -> Task:
    chosen = [n for n, a in enumerate(arrays) if a is not None]
    dims = tuple(d for d in scope.order if any(a is not None and among(d, a.dims) for a in arrays))
    positions = tuple(None if a is None else broadcast(a, dims) for a in arrays)
    kept: list[Axis] = [own for own, a in zip(affine, arrays, strict=True) if a is None]  # type: ignore[misc]
    together = chosen == list(range(chosen[0], chosen[-1] + 1))
    before = sum(arrays[n] is None for n in range(chosen[0])) if together else 0
    found = (*kept[:before], *dims, *kept[before:])
    base = body.tensor(node.tensor)
    limits: list[Limit] = list(zip(node.indices, affine, node.tensor.shape, strict=True))
    wanted = tuple(d for d in scope.order if among(d, found))
    modes = _modes(body.is_kept_in_range(node, scope), limits)
    form, inside = GATHER, modes[:1] != [FILL]
    data = [n for n in chosen if affine[n] is None]
    if len(data) == 1:
        (at,) = data
        rows = points(kept[before:])
        place = Place(at, arrays[at], found, chosen == data, rows)  # type: ignore[arg-type]
        form = form_of(body, node, place, scope)
    body.report.note(form)
    if form == CHOSEN:
        return (yield from chosen_value(body, node, place, inside, scope))
    if data and form == GATHER:
        body.report.because(f"`{text(node)}` is read at positions that are data")
    if form == ONE_HOT:
        position = Value(broadcast(place.index, dims), dims, place.index.kind)
        value = one_hot_value(body, node, position, at, kept, inside)
    else:
        masked = modes == [FILL] and _masks_itself(limits, arrays)
        value = Value(
            _gathered(body, node, base, positions, [CLIP] if masked else modes), found, (node.dtype, False)
        )
        if masked:
            value = body.named_as(_name(base, positions), value)
            return _masked(body, node, value, limits, arrays, scope)
    if modes:
        value = body.named_as(_name(base, positions), value)
    return body.with_steps(value, reorder(found, wanted), wanted)


def _masks_itself(limits: Sequence[Limit], arrays: Sequence[Value | None]) -> bool:
    """Whether what lies outside is told by comparisons beside the gather: of positions in several dimensions XLA's own mode makes
    an array first, and reduces that to a mask (trilinear samples take a fifth of the time with the comparisons)."""
    own = [a for a in arrays if a is not None]
    return len(own) > 1 and all(a.dtype == "int32" and not a.literal for a in _unsure(limits, arrays))


def _unsure(limits: Sequence[Limit], arrays: Sequence[Value | None]) -> dict[Value, Expr]:
    """The positions that may be out of range, each with the extent of its dimension."""
    return {
        a: as_expr(extent)
        for (index, own, extent), a in zip(limits, arrays, strict=True)
        if a is not None and not (is_known_inside(index, extent) if own is None else _inside(own, extent))
    }


def _masked(
    body: Body,
    node: Read,
    nearest: Value,
    limits: Sequence[Limit],
    arrays: Sequence[Value | None],
    scope: Scope,
) -> Value:
    """The ``nearest`` elements where all positions are in range. Those below zero are large as numbers without a sign."""
    inside: Value | None = None
    for array, extent in _unsure(limits, arrays).items():
        unsigned = Value(Cast(array.code, "uint32"), array.dims, ("uint32", False))
        stop = Value(size(extent), (), ("int32", True), literal=True)
        own = body.combine(LESS, [unsigned, stop], ("bool", False), scope)
        inside = own if inside is None else body.combine(AND, [inside, own], ("bool", False), scope)
    has_data = any(reads_of(i) for i in node.indices)
    outside = Value(number(outside_element(node, has_data)), (), (node.dtype, True), literal=True)
    assert inside is not None
    return body.combine(SELECT, [inside, body.in_order(nearest, scope), outside], (node.dtype, False), scope)


def _gathered(
    body: Body, node: Read, base: Name, positions: tuple[Node | None, ...], modes: Sequence[str]
) -> Node:
    """The gather in the first of ``modes``, or in one of them in which there is one already."""
    if not modes:
        return Gather(base, positions)
    outside = number(outside_element(node, any(reads_of(i) for i in node.indices)))
    source = _never_empty(node, base, positions, Typed(outside, node.dtype))
    gathers = [Gather(source, positions, mode, outside if mode == FILL else None) for mode in modes]
    return next((g for g in gathers if g in body.written), gathers[0])


def _never_empty(node: Read, base: Node, positions: Sequence[Node | None], outside: Node) -> Node:
    """``base`` with one more element, as there is outside, in the dimensions that may be empty: JAX gathers no element from nothing."""
    extents = [as_expr(extent) for extent in node.tensor.shape]
    more = [
        position is not None and known(extent) is None and not nonnegative(linear(extent) - constant(1))
        for extent, position in zip(extents, positions, strict=True)
    ]
    if not any(more):
        return base
    return Spread(base, outside, tuple((ZERO, ONE if one else ZERO, 0) for one in more))


def _name(base: Name, positions: Sequence[Node | None]) -> str:
    """``X_I`` for X at the positions I, as far as they have names."""
    return "_".join([base.identifier, *(p.identifier for p in positions if isinstance(p, Name))])


def _modes(kept: bool, limits: Sequence[Limit]) -> list[str]:
    """What a gather may do out of range, the fastest first: anything where that is known not to happen, or does not count.

    None at all where no position is data and all are in range: that is an index as Python has it.
    """
    if all(own is not None and _inside(own, extent) for _, own, extent in limits):
        return []
    if all(is_known_inside(i, extent) if own is None else _inside(own, extent) for i, own, extent in limits):
        return [IN_BOUNDS]
    return [CLIP, FILL] if kept else [FILL]


def _inside(index: Expr | None, extent: Expr | int) -> bool:
    """Whether an affine index is known to stay in range."""
    return index is not None and index_stays_in(index, as_expr(extent))

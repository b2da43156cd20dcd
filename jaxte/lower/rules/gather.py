"""Reads at positions that are data: gathers, where out of range is NaN (0 for integers), also below zero; and their forms, with what each costs.

``X[I[i], j]`` is a gather. It is also the product of the one-hot matrix of the positions with X, which is fastest where
matrix products are cheap, gathers are not, and X has few rows. In that product every element of X is met by every position, with
a factor 0 if it is not the one that is read: where X holds an infinity or a NaN, ``0 * inf`` is NaN everywhere. Such products are taken
by their cost only where X is stated to be finite (``te.facts.finite``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import ONE, ZERO, Axis, Call, Expr, Read, Scalar, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.limits import MOST_KEPT
from jaxte.lang.operators import ADD, AND, LESS, LESS_EQUAL, MAXIMUM, MINIMUM, SELECT, SUBTRACT
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.lower.arrays.data import CLIP, FILL, IN_BOUNDS, Gather, OneHot
from jaxte.lower.arrays.elementwise import Apply, Cast, Kept, Name, Number, Typed, number, size
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.views import Spread
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.candidates import Candidate, choose
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import broadcast
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.policy import signature
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.data.recognise import is_known_inside
from jaxte.lower.views.affine import reorder
from jaxte.lower.views.scope import Scope
from jaxte.sets.affine import linear
from jaxte.sets.intervals import constant, dims_of, extent_of, index_stays_in, known, nonnegative
from jaxte.tensors.facts import Finite, find

GATHER, ONE_HOT = "gather", "one-hot product"
_NOT_FINITE = "an infinity or a NaN in {} would make all that is read NaN, as 0 * inf"


def form_of(body: Body, node: Read, index: Value, place: int, scope: Scope) -> str:
    """How to read ``node``, whose only array of positions is ``index``, in the place ``place`` of its indices."""
    current = substitute(node, dict(scope.table))
    assert isinstance(current, Read)
    offers = list(_candidates(node, index, place))
    if len(offers) < 2:
        return GATHER
    axes = [d for d in scope.order if d in free_axes(current)]
    chosen = choose(body, offers, signature(axes, current))
    if chosen.caution:
        body.report.because(chosen.caution)
    return chosen.form


def _candidates(node: Read, index: Value, place: int) -> Iterator[Candidate]:
    rows = points(index.dims)
    extents = [extent_of(as_expr(e)) for e in node.tensor.shape]
    values = rows * prod(extents[:place] + extents[place + 1 :])
    yield Candidate(GATHER, Work(gather=values, kernel=1), None)
    ones = rows * extents[place]
    hot = ones * dtypes.width(node.dtype)
    if not is_float(node.dtype) or hot > MOST_KEPT:
        return
    work = Work(dot=2.0 * values * extents[place], stream=2.0 * hot, temporaries=hot, kernel=2)
    finite = find(node.tensor, Finite) is not None
    yield Candidate(ONE_HOT, work, None, "" if finite else _NOT_FINITE.format(node.tensor.name))


def one_hot_value(
    body: Body, node: Read, index: Value, place: int, kept: Sequence[Axis], inside: bool
) -> Value:
    """``node`` as a product, over ``kept`` with the dimensions of ``index`` at ``place``.

    Args:
        inside: whether every position is in range, or its element does not count where it is not.
    """
    extent = as_expr(node.tensor.shape[place])
    base, at = body.tensor(node.tensor), body.named(index).code
    letters = "abcdefghijklmnopqrstuvwxy"
    block, own = letters[: len(index.dims)], letters[len(index.dims) :][: len(kept)]
    spec = f"{block}z,{own[:place]}z{own[place:]}->{own[:place]}{block}{own[place:]}"
    assert isinstance(at, Name)
    ones = Value(OneHot(at, extent, node.dtype), (*index.dims, Axis("z", 0, extent)), (node.dtype, False))
    hot = body.named_as(f"{at.identifier}_one_hot", ones).code
    dims = (*kept[:place], *index.dims, *kept[place:])
    product = Value(Einsum(spec, (hot, base), exact=True), dims, (node.dtype, False))
    if inside:
        return product
    inside_range = Apply(AND, (Apply(LESS_EQUAL, (Number(0), at)), Apply(LESS, (at, size(extent)))))
    mask = broadcast(Value(inside_range, index.dims, ("bool", False)), dims)
    product = body.named(product)
    return Value(Apply(SELECT, (mask, product.code, Number(math.nan))), dims, product.kind)


_OF_INTEGERS = (ADD, SUBTRACT, MINIMUM, MAXIMUM)  # which take a gather's loop no time

# an index, the same where it is no data, and the extent of its dimension
Limit = tuple[Expr, Expr | None, Expr | int]


def gather_value(body: Body, node: Expr, scope: Scope) -> Task:
    """``X[I[i], j]`` as an indexed read; dimensions read in order stay slices, the others become index arrays."""
    assert isinstance(node, Read)
    shape = [as_expr(e) for e in node.tensor.shape]
    has_data = any(reads_of(i) for i in node.indices)
    if any(known(extent) == 0 for extent in shape):  # JAX gathers no element from nothing
        nothing = Typed(number(_outside(node, has_data)), node.dtype)
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
    if has_data:
        body.report.because(f"`{text(node)}` is read at positions that are data")
    return _indexed(body, node, arrays, affine, scope)


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
) -> Value:
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
    form = GATHER
    if len(chosen) == 1 and affine[chosen[0]] is None:
        position = Value(broadcast(arrays[chosen[0]], dims), dims, arrays[chosen[0]].kind)  # type: ignore[arg-type, union-attr]
        form = form_of(body, node, position, chosen[0], scope)
    body.report.note(form)
    if form == ONE_HOT:
        inside = modes[0] != FILL
        value = one_hot_value(body, node, position, chosen[0], kept, inside)
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
    outside = Value(number(_outside(node, has_data)), (), (node.dtype, True), literal=True)
    assert inside is not None
    return body.combine(SELECT, [inside, body.in_order(nearest, scope), outside], (node.dtype, False), scope)


def _gathered(
    body: Body, node: Read, base: Name, positions: tuple[Node | None, ...], modes: Sequence[str]
) -> Node:
    """The gather in the first of ``modes``, or in one of them in which there is one already."""
    if not modes:
        return Gather(base, positions)
    outside = number(_outside(node, any(reads_of(i) for i in node.indices)))
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


def _outside(node: Read, has_data: bool) -> Scalar:
    """The element that a read out of range gives; affine reads leave their tensor behind guards only."""
    if node.dtype == "bool":
        return False
    return math.nan if has_data and dtypes.is_inexact(node.dtype) else 0


def _inside(index: Expr | None, extent: Expr | int) -> bool:
    """Whether an affine index is known to stay in range."""
    return index is not None and index_stays_in(index, as_expr(extent))

"""The work of the general path of a reduction: einsum, sums of shifted slices, or a reduction of jnp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile
from math import prod

from jaxte.algebra.product import product_of, split_outer
from jaxte.lang import dtypes
from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.expr import TRUE, Axis, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import (
    FEW,
    FEW_POSITIONS,
    LONG_SUM,
    LONGEST_UNROLLED,
    MOST_TERMS,
    MOST_UNROLLED,
    NARROW,
)
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.shifted_axes import are_digits, shifted_axes
from jaxte.lower.cost.work import Work, expensive_calls, long_text, points
from jaxte.lower.match.index_terms import forms_of
from jaxte.sets.affine import linear
from jaxte.sets.intervals import extent_of

_SHORT_ROWS = 4  # how much longer a reduction takes whose dimensions lie between others


def general_work(axes: Sequence[Axis], node: Reduce, facts: Platform | None = None) -> Work:
    """The work of ``node`` at each point of ``axes``, without any form of its own, on a platform; without one, products are written before they are summed."""
    everywhere = points(axes) * points(node.axes)
    width = dtypes.width(node.dtype)
    fused = facts is not None and _is_fused(axes, node, facts)
    shifted = shifted_axes(node, facts)
    taps = prod(extent_of(a.extent) for a in shifted)
    calls = everywhere * expensive_calls([*node.exprs, node.where])
    # laid out before it is reduced
    if taps > MOST_UNROLLED or any(extent_of(a.extent) > LONGEST_UNROLLED for a in shifted):
        laid_out = width * everywhere
        own = Work(stream=3 * laid_out, temporaries=laid_out, kernel=4)
    else:
        own = Work(kernel=max(1, taps / 8)) + long_text(taps)
    gathered = len(gathered_rows(axes, node))
    if gathered > 1:  # each is an array before anything is summed
        own += Work(stream=2 * gathered * width * everywhere, kernel=gathered)
    if facts is not None and facts.pads_rows:
        own += Work(stream=width * taps * _padding(axes, node, facts.lanes))
    if facts is not None:
        own += Work(tap=(times_of_channels(axes, node, facts) - 1) * everywhere)
    terms = taps * points(a for a in node.axes if not among(a, shifted))
    if len(shifted) < 2 and terms <= MOST_TERMS and _is_elementwise(node, shifted):
        return own + Work(tap=everywhere, transcendental=calls)
    if is_contraction(node, shifted) and not (fused and _is_beside_whole(axes, node, shifted)):
        moved = width * _moved(axes, node, shifted) if shifted else 0
        flops = 2.0 * everywhere * (1 + NARROW / _narrowest(axes, node, shifted))
        return own + Work(dot=flops, stream=moved, kernel=taps, transcendental=calls)
    # each product is made, then summed
    if shifted and points(a for a in node.axes if not among(a, shifted)) > 1:
        short = all(extent_of(a.extent) <= LONGEST_UNROLLED for a in shifted)
        own += _fused_sums(axes, node, shifted) if fused and short else Work(stream=4 * width * everywhere)
    elif (
        shifted and node.where is not TRUE and not fused
    ):  # zeros around what is read; else pieces of the result are put together
        result = points(axes)
        moved = 2 * _read_points(node, shifted) + result if node.is_sum else 8 * result
        own += Work(stream=width * moved)
    if facts is not None and facts.moves_lanes_apart and _moves_lanes(axes, node, shifted):
        own += Work(stream=2.0 * width * taps * points(axes), kernel=taps)
    slow = _SHORT_ROWS if _reduces_digits(axes, node) or _is_short(node, shifted) else 1
    return own + Work(tap=slow * everywhere, transcendental=calls)


def _moves_lanes(axes: Sequence[Axis], node: Reduce, shifted: Sequence[Axis]) -> bool:
    """Whether one tensor is read with a stride, or at quotients, along one of its last two dimensions, where these are unrolled: each slice is an array.

    Nine slices of a pool of 3 x 3 take 340,384 cycles of a TPU and more that are not stated, a call of ``lax.reduce_window`` 135,597. Slices that are multiplied by
    another tensor were measured beside convolutions as they are charged.
    """
    reads = reads_of(*node.exprs)
    if len({read.tensor for read in reads}) > 1:
        return False
    rows = [linear(i).terms for read in reads for i in read.indices[-2:] if depends_on(i, shifted)]
    return any(
        abs(c) > 1 if isinstance(atom, Axis) else isinstance(division(atom), Quotient)
        for terms in rows
        for atom, c in terms.items()
        if depends_on(atom, axes)
    )


def _is_fused(axes: Sequence[Axis], node: Reduce, facts: Platform) -> bool:
    """Whether products are summed as they are made: of slices anywhere, of rows of the result that overlap where these are no array."""
    overlap = facts.copies_overlaps and any(
        sum(among(a, axes) for a in form.axes) > 1 and not are_digits(form)
        for form in forms_of([*node.exprs])
    )
    return facts.fuses_products and not overlap


def _fused_sums(axes: Sequence[Axis], node: Reduce, shifted: Sequence[Axis]) -> Work:
    """Sums of products that are not written: what is multiplied is read, and a sum of a whole array takes two kernels, of many rows one for all."""
    read = 2 * dtypes.width(node.dtype) * _read_points(node, shifted)
    long = [extent_of(a.extent) for a in node.axes if extent_of(a.extent) > LONGEST_UNROLLED]
    taps = prod(extent_of(a.extent) for a in shifted)
    whole = all(among(a, shifted) for a in axes) and prod(long[:-1]) < LONG_SUM
    return Work(stream=read, kernel=2 * taps if whole else 2)


def _padding(axes: Sequence[Axis], node: Reduce, lanes: int) -> float:
    """The elements that the result has while it is computed, its last dimension padded to ``lanes``, where it is read at digits of the last of ``axes``.

    With as many rows these are the last dimension instead, and nothing is padded (measured: four taps of 2**19 elements take 940,169 cycles of a
    TPU with 16 rows, 252,854 with 64, 91,737 with 128 and 85,604 with 4,096; a convolution 128,768, 41,864, 25,478 and 25,736).
    """
    if not axes or points(axes[:-1]) >= lanes:
        return 0.0
    digits = [
        d for d in map(division, postorder(*node.exprs)) if isinstance(d, Remainder) and d.number is axes[-1]
    ]
    low = min((d.base for d in digits if d.base), default=lanes)
    return points(axes) * lanes / low if low < lanes else 0.0


def times_of_channels(axes: Sequence[Axis], node: Reduce, facts: Platform) -> float:
    """How often as long as others elements take that are multiplied by the filter of a channel, in registers that are half empty twice as long."""
    if facts.channel_taps == 1 or not _has_channels(axes, node):
        return 1.0
    last = extent_of(axes[-1].extent)
    return facts.channel_taps * min(2.0, -(-last // facts.lanes) * facts.lanes / last)


def _has_channels(axes: Sequence[Axis], node: Reduce) -> bool:
    """Whether a product of two tensors is a convolution in which each channel has a filter for itself, or the gradient of such a filter.

    Of what is added in an index the result has one axis, the sum the other, and the factor without that index one of these; a further axis of the result is in
    both factors.
    """
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    if len(inner) != 2 or not node.is_sum:
        return False
    forms = [f for f in forms_of([*node.exprs]) if len(f.axes) > 1 and not are_digits(f)]
    moved = frozenset(a for form in forms for a in form.axes)
    own = [frozenset(free_axes(f.expr)) for f in inner]
    halves = all(len(f.axes) == 2 and sum(among(a, axes) for a in f.axes) == 1 for f in forms)
    apart = all(any(len(o & frozenset(f.axes)) == 1 for o in own) for f in forms)
    channels = [a for a in axes if a in own[0] & own[1] and a not in moved]
    return bool(forms) and halves and apart and bool(channels)


def gathered_rows(axes: Sequence[Axis], node: Reduce) -> list[Read]:
    """What ``node`` reads at positions that are data, another element at each point of ``axes`` and of its own axes."""
    over = {*axes, *node.axes}
    reads = [r for r in reads_of(*node.exprs) if any(map(reads_of, r.indices))]
    return [
        r
        for r in reads
        if over <= set(free_axes(r)) and all(any(i is axis for i in r.indices) for axis in node.axes)
    ]


def _read_points(node: Reduce, shifted: Sequence[Axis]) -> int:
    """How many elements the largest tensor has that is read at indices of ``shifted``."""
    tensors = {read.tensor for read in reads_of(*node.exprs) if depends_on(read, shifted)}
    return max((prod(map(extent_of, tensor.shape)) for tensor in tensors), default=0)


def _moved(axes: Sequence[Axis], node: Reduce, shifted: Sequence[Axis]) -> float:
    """Elements read and written beside the matrix products of a sum of them, one for each tap.

    Slices are copied, into the order of dimensions that the product takes, and read; results are written, read and added.
    """
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    unrolled = frozenset(shifted)
    sizes = [points(a for a in free_axes(f.expr) if a not in unrolled) for f in inner]
    result = points(a for a in axes if a not in unrolled)
    return points(shifted) * (3.0 * sum(sizes) + 3.0 * result)


def _reduces_digits(axes: Sequence[Axis], node: Reduce) -> bool:
    """Whether reduced dimensions lie between others, so that the reduction is not one of long rows or of whole slices."""
    long = points(node.axes) > LONGEST_UNROLLED
    if long and all(_is_of_rows(read, node.axes) for read in reads_of(*node.exprs)):
        return False
    return any(
        len(form.axes) > 1
        and any(among(a, axes) for a in form.axes)
        and any(among(a, node.axes) for a in form.axes)
        and are_digits(form)
        for form in forms_of([*node.exprs])
    )


def _is_of_rows(read: Read, reduced: Sequence[Axis]) -> bool:
    """Whether what is reduced is the last of the positions that ``read`` goes through, as ``k``, ``i`` and ``j`` are in ``x[b, 4 * a + k, i, j]``."""
    behind = list(dropwhile(lambda index: not depends_on(index, reduced), read.indices))
    if any(reads_of(index) for index in behind):
        return False
    first: Mapping[Expr, int] = linear(behind[0]).terms if behind else {}
    inner = [abs(c) for atom, c in first.items() if depends_on(atom, reduced)]
    outer = [abs(c) for atom, c in first.items() if not depends_on(atom, reduced)]
    whole = all(among(a, reduced) for index in behind[1:] for a in free_axes(index))
    return whole and max(inner, default=0) < min(outer, default=1 + max(inner, default=0))


def _is_short(node: Reduce, shifted: Sequence[Axis]) -> bool:
    """Whether a reduction that is a loop of its own has a few rounds only."""
    return not shifted and 1 < points(node.axes) <= FEW_POSITIONS


def _narrowest(axes: Sequence[Axis], node: Reduce, shifted: Sequence[Axis]) -> int:
    """The least extent of the matrix products: what is contracted, or what is in one factor only."""
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    unrolled = frozenset(shifted)
    over = [frozenset(free_axes(f.expr)) - unrolled for f in inner]
    everywhere = frozenset.intersection(*over)
    contracted = points(a for a in node.axes if a not in unrolled)
    own = [points(a for a in axes if a in found and a not in everywhere) for found in over]
    return min((extent for extent in (contracted, *own) if extent > 1), default=NARROW)


def is_contraction(node: Reduce, shifted: Sequence[Axis] = ()) -> bool:
    """Whether what is left of a product after unrolling is a matrix product."""
    if not node.is_sum:
        return False
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    unrolled = frozenset(shifted)
    left = [a for a in node.axes if a not in unrolled and extent_of(a.extent) > 1]
    over = [frozenset(free_axes(f.expr)) - unrolled for f in inner]
    return bool(left) and len(over) > 1 and any(a != over[0] for a in over)


def _is_beside_whole(axes: Sequence[Axis], node: Reduce, shifted: Sequence[Axis]) -> bool:
    """Whether one factor alone is shifted by a few positions of the result, and another has all other dimensions: sums of products that are not written."""
    if len(shifted) != 1 or not among(shifted[0], axes) or extent_of(shifted[0].extent) > MOST_TERMS:
        return False
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    over = [frozenset(free_axes(f.expr)) for f in inner]
    every = frozenset().union(*over)
    return sum(shifted[0] in own for own in over) == 1 and every - {shifted[0]} in over


def _is_elementwise(node: Reduce, shifted: Sequence[Axis]) -> bool:
    """Whether a product after unrolling is as large as one of its factors and summed over few positions, so that these are written out."""
    _, inner = split_outer(product_of(node.exprs[0]).factors, node.axes)
    unrolled = frozenset(shifted)
    left = [a for a in node.axes if a not in unrolled and extent_of(a.extent) > 1]
    over = [frozenset(free_axes(f.expr)) - unrolled for f in inner]
    every = frozenset().union(*over)
    if not is_contraction(node, shifted):
        return False
    shared = all(any(a in own and own != every for own in over) for a in left)
    return every in over and shared and all(extent_of(a.extent) <= FEW for a in left)

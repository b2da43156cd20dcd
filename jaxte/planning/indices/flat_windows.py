"""Tensors of which the digits of a position in a window are read, as flat ones: ``x[(i + k) // 24, (i + k) % 24]`` is ``x_flat[i + k]``.

A window over hours, of an array by days and hours, hides in the two digits, as one over pixels does in an array of blocks of pixels, ``x[(i + p) // 2, (i + p) % 2 * 8 + c]``.
Read at their position, a convolution is one. The flat tensor has the elements of the other one in the order of the positions, and so has its adjoint. This is the converse of
:mod:`jaxte.planning.indices.shaped`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.divisions import Quotient, division, divisions
from jaxte.lang.expr import Axis, Expr, Read, as_expr, conjuncts
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.planning.terms import term_bounds
from jaxte.sets.affine import linear
from jaxte.sets.digits import are_digits
from jaxte.sets.index_forms import linear_or_none, term_of
from jaxte.sets.intervals import extent_of, known
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.structure import CANONICAL, laid_out
from jaxte.tensors.tensor import Compute, Tensor


class Flat(Compute):
    """A tensor over the numbers of which its own positions are digits."""

    __slots__ = ()


def with_flat_windows(body: Expr) -> Expr:
    """``body`` with the reads of digits of sums of axes as reads of flat tensors; the same node where there are none."""
    found = {read: places for read in reads_of(body) if (places := _places(read)) is not None}
    if not found:
        return body
    guards = guards_of(body, set(found))
    table: dict[Expr, Expr] = {}
    for read, places in found.items():
        conditions = [c for guard in guards.get(read, ()) for c in conjuncts(guard)]
        flat = _flat(read, places, conditions)
        if flat is not None:
            table[read] = flat
    return substitute(body, table) if table else body


def _places(read: Read) -> list[Expr] | None:
    """The positions of which ``read`` is an element, sums of axes and axes, in the order in which they are read; None where the digits of no sum are."""
    numbers: dict[Expr, set[Expr]] = {}
    for index in read.indices:
        if reads_of(index):
            return None
        for own in divisions(index):
            if own.base is not None and len(free_axes(own.number)) > 1 and _is_window(own.number):
                numbers.setdefault(own.number, set()).add(own.node)
    digits = [number for number, nodes in numbers.items() if len(nodes) > 1]
    if not digits:
        return None
    held = [axis for number in digits for axis in free_axes(number)]
    table: dict[Expr, Expr] = dict(zip(digits, CANONICAL, strict=False))
    rest = [axis for index in read.indices for axis in free_axes(substitute(index, table))]
    if len(set(held)) < len(held) or len(digits) > len(CANONICAL) or not set(held).isdisjoint(rest):
        return None
    at = {new: old for old, new in table.items()}
    return [at.get(axis, axis) for axis in dict.fromkeys(rest)]


def _is_window(number: Expr) -> bool:
    """Whether ``number`` is a sum of axes that is the same at several of their positions; of one that is not, the axes are digits, which views have."""
    form = linear_or_none(number)
    return form is not None and all(isinstance(atom, Axis) for atom in form.terms) and not are_digits(form)


def _flat(read: Read, places: Sequence[Expr], conditions: Sequence[Expr]) -> Read | None:
    """The element of a flat tensor that ``read`` is; None where that would have more elements than the tensor has, or read outside of it."""
    ends = [_end(place, conditions) for place in places]
    if None in ends or len(places) > len(CANONICAL):
        return None
    axes = [CANONICAL[n] for n in range(len(places))]
    indices = [substitute(index, dict(zip(places, axes, strict=True))) for index in read.indices]
    extents = [_whole(read.tensor, indices, axis, end or 0) for axis, end in zip(axes, ends, strict=True)]
    if prod(extents) > prod(map(extent_of, read.tensor.shape)):
        return None
    own = [Axis(f"i{n}", 0, extent) for n, extent in enumerate(extents)]
    body = Read(read.tensor, [substitute(i, dict(zip(axes, own, strict=True))) for i in indices])
    if not reads_inside(own, body):
        return None
    return Read(laid_out(Flat, f"{read.tensor.name}_flat", own, body), places)


def _whole(tensor: Tensor, indices: Sequence[Expr], axis: Axis, end: int) -> int:
    """The positions along ``axis`` that ``tensor`` has where its quotient is one of ``indices``, so that all windows are of one flat tensor; the ``end`` of those read elsewhere."""
    for index, extent in zip(indices, tensor.shape, strict=True):
        most, own = known(as_expr(extent)), division(index)
        if index is axis and most is not None:
            return max(most, end)
        if isinstance(own, Quotient) and own.number is axis and own.base is not None and most is not None:
            return max(most * own.base, end)
    return end


def _end(place: Expr, conditions: Sequence[Expr]) -> int | None:
    """How many positions from 0 on ``place`` is one of where ``conditions`` hold; None where it may be another one."""
    form = linear(place)
    term, factor = term_of(form)
    bounds = term_bounds([term], conditions)[term]
    if bounds is None:
        return None
    low, high = sorted(factor * bound + form.constant for bound in bounds)
    return high + 1 if low >= 0 else None

"""Flat tensors that are read at numbers of several digits, as tensors of that shape: ``x[56 * (i + u) + 4 * (j + v) + c]`` is ``x_shaped[i + u, j + v, c]``.

A window in a digit hides in the sum of the digits: read at the digits, a convolution is one. The tensor of that shape is a reshape, and so is its adjoint.

Tensors of which the digits of a position in a window are read, as flat ones: ``x[(i + k) // 24, (i + k) % 24]`` is ``x_flat[i + k]``.

A window over hours, of an array by days and hours, hides in the two digits, as one over pixels does in an array of blocks of pixels, ``x[(i + p) // 2, (i + p) % 2 * 8 + c]``.
Read at their position, a convolution is one. The flat tensor has the elements of the other one in the order of the positions, and so has its adjoint. This is the converse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod

from jaxte.lang.divisions import Quotient, division, divisions
from jaxte.lang.expr import ZERO, Axis, Expr, Read, as_expr, conjuncts
from jaxte.lang.limits import FEW
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.planning.terms import term_bounds
from jaxte.sets.affine import from_linear, linear
from jaxte.sets.digits import are_digits, whole
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index, linear_or_none, term_of
from jaxte.sets.intervals import axis_bounds, extent_of, interval, known
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.linear import Linear
from jaxte.tensors.bodies.contexts import contexts, guards_of
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.structure import CANONICAL, laid_out
from jaxte.tensors.tensor import Compute, Tensor

Weights = tuple[int, ...]  # of digits, the greatest first and 1 last


class Shaped(Compute):
    """A tensor with axes taken apart into digits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Number:
    """An index that is a number of several digits.

    Attributes:
        form: its terms.
        always: whether a condition holds wherever it is read.
    """

    form: Linear
    always: Callable[[Expr], bool]

    def digit(self, low: int, high: int | None) -> Linear | None:
        """The digit between the weights ``low`` and ``high``: its terms, and as much of the constant as is nearest to 0; None where it is none."""
        terms = {
            a: c for a, c in self.form.terms.items() if abs(c) >= low and (high is None or abs(c) < high)
        }
        later = [c for c in self.form.terms.values() if high is not None and abs(c) >= high]
        if any(c % low for c in terms.values()) or any(c % (high or 1) for c in later):
            return None
        constant = self.form.constant // low  # what lower digits left of it is a multiple of their weight
        if high is not None:
            ratio = high // low
            constant = (constant + ratio // 2) % ratio - ratio // 2
        return Linear({a: c // low for a, c in terms.items()}, constant)

    def without(self, digit: Linear, low: int) -> _Number:
        return _Number(self.form - digit * low, self.always)

    def is_below(self, digit: Linear, ratio: int) -> bool:
        """Whether ``digit`` is one of ``ratio`` values from 0, by the ranges of its axes or where conditions let it be read."""
        ends = interval(digit, axis_bounds(a for a in digit.terms if isinstance(a, Axis)))
        if ends is None:
            return False
        if ends[0] >= 0 and ends[1] < ratio:
            return True
        value = from_linear(digit)
        over = max(-ends[0], ends[1] - ratio + 1)
        # Values of a digit that conditions hold in its range, as those of a padded window.
        return FEW <= ratio > 2 * over and self.always(value >= 0) and self.always(value < ratio)


def with_shapes(axes: Sequence[Axis], body: Expr) -> Expr:
    """``body``, over ``axes``, with flat tensors at their digits, where a window is in one; the same node where none is."""
    if not body.reduces:
        return body
    reads: dict[Tensor, list[Read]] = {}
    for read in reads_of(body):
        reads.setdefault(read.tensor, []).append(read)
    found: dict[Tensor, list[tuple[Weights, list[list[Expr]]]]] = {}
    for tensor, own in reads.items():
        # windows of one tensor that conditions cut, as columns added to an image, are added slice by slice as they stand
        always = [partial(_always, tuple(axes), body, read) if len(reads) > 1 else _unknown for read in own]
        found[tensor] = [
            _at_digits(known(as_expr(extent)), [r.indices[d] for r in own], always)
            for d, extent in enumerate(tensor.shape)
        ]
    if not any(
        len(free_axes(e)) > 1
        for dims in found.values()
        for w, at in dims
        if len(w) > 1
        for own in at
        for e in own
    ):
        return body
    table: dict[Expr, Expr] = {}
    for tensor, dims in found.items():
        if any(len(weights) > 1 for weights, _ in dims):
            shaped = _shaped(tensor, tuple(weights for weights, _ in dims))
            for n, read in enumerate(reads[tensor]):
                table[read] = Read(shaped, [e for _, at in dims for e in at[n]])
    return substitute(body, table)


def _always(axes: tuple[Axis, ...], body: Expr, read: Read, condition: Expr) -> bool:
    """Whether ``condition`` holds wherever ``read`` is read."""
    for _, variables, conditions in contexts(axes, body, {read}):
        held = [c for c in conditions if is_decidable(c)]
        if not held or not IntegerSet(variables, held).implies(condition):
            return False
    return True


def _unknown(condition: Expr) -> bool:
    return False


def _at_digits(
    extent: int | None, indices: Sequence[Expr], always: Sequence[Callable[[Expr], bool]]
) -> tuple[Weights, list[list[Expr]]]:
    """The weights of digits that all ``indices`` are numbers of, and the digits; of the whole alone where there are no such."""
    alone: tuple[Weights, list[list[Expr]]] = (1,), [[i] for i in indices]
    numbers: list[_Number] = []
    for index, own in zip(indices, always, strict=True):
        form = linear(index) if is_index(index) else None
        if form is None or not all(isinstance(a, Axis) and a.lo is ZERO for a in form.terms):
            return alone
        numbers.append(_Number(form, own))
    weights: list[int] = [1]
    digits: list[list[Linear]] = [[] for _ in indices]
    for weight in sorted({abs(c) for n in numbers for c in n.form.terms.values()} - {1}):
        low = weights[-1]
        if extent is None or extent % weight or weight % low:
            continue
        pairs = [(n, d) for n in numbers if (d := n.digit(low, weight)) is not None]
        if len(pairs) == len(numbers) and all(n.is_below(d, weight // low) for n, d in pairs):
            weights.append(weight)
            numbers = [n.without(d, low) for n, d in pairs]
            for found, (_, d) in zip(digits, pairs, strict=True):
                found.append(d)
    last = [n.digit(weights[-1], None) for n in numbers]
    if len(weights) == 1 or any(d is None for d in last):
        return alone
    numbered = [[*found, d] for found, d in zip(digits, last, strict=True) if d is not None]
    return tuple(reversed(weights)), [[from_linear(d) for d in reversed(own)] for own in numbered]


def _shaped(tensor: Tensor, shapes: tuple[Weights, ...]) -> Shaped:
    axes: list[Axis] = []
    indices: list[Expr] = []
    for extent, weights in zip(tensor.shape, shapes, strict=True):
        ends = pairwise((extent, *weights)) if len(weights) > 1 else [(extent, 1)]
        own = [
            Axis(f"i{len(axes) + n}", 0, high // low if low != 1 else high)
            for n, (high, low) in enumerate(ends)
        ]  # type: ignore[operator]
        axes += own
        indices.append(whole(own, weights))
    return laid_out(Shaped, f"{tensor.name}_shaped", axes, Read(tensor, indices))


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

"""Flat tensors that are read at numbers of several digits, as tensors of that shape: ``x[56 * (i + u) + 4 * (j + v) + c]`` is ``x_shaped[i + u, j + v, c]``.

A window in a digit hides in the sum of the digits: read at the digits, a convolution is one. The tensor of that shape is a reshape, and so is its adjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from jaxte.lang.expr import ZERO, Axis, Expr, Read, as_expr
from jaxte.lang.limits import FEW
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.affine import Linear, from_linear, linear
from jaxte.sets.digits import whole
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import axis_bounds, interval, known
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.structure import laid_out
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

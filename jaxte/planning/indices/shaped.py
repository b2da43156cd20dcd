"""Flat tensors that are read at numbers of several digits, as tensors of that shape: ``x[56 * (i + u) + 4 * (j + v) + c]`` is ``x_shaped[i + u, j + v, c]``.

A window in a digit hides in the sum of the digits: read at the digits, a convolution is one. The tensor of that shape is a reshape, and so is its adjoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from weakref import WeakValueDictionary

from jaxte.lang.expr import ZERO, Axis, Expr, Read, Reduce, as_expr
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.sets.affine import Linear, from_linear, is_index, linear
from jaxte.sets.digits import whole
from jaxte.sets.intervals import axis_bounds, interval, known
from jaxte.tensors.tensor import Compute, Tensor

Weights = tuple[int, ...]  # of digits, the greatest first and 1 last


class Shaped(Compute):
    """A tensor with axes taken apart into digits."""

    __slots__ = ()


_made: WeakValueDictionary[tuple[Tensor, tuple[Weights, ...]], Shaped] = WeakValueDictionary()


def with_shapes(body: Expr) -> Expr:
    """``body`` with flat tensors at their digits, where a window is in one; the same node where none is."""
    if not any(isinstance(n, Reduce) for n in postorder(body)):
        return body
    reads: dict[Tensor, list[Read]] = {}
    for read in reads_of(body):
        reads.setdefault(read.tensor, []).append(read)
    shapes = {tensor: _weights_of(tensor, own) for tensor, own in reads.items()}
    if not any(_has_window(read, shapes[t]) for t, own in reads.items() for read in own):
        return body
    table: dict[Expr, Expr] = {}
    for tensor, own in reads.items():
        if any(len(w) > 1 for w in shapes[tensor]):
            shaped = _shaped(tensor, shapes[tensor])
            table |= {read: Read(shaped, _at(read, shapes[tensor])) for read in own}
    return substitute(body, table)


def _weights_of(tensor: Tensor, reads: Sequence[Read]) -> tuple[Weights, ...]:
    """The weights of the digits of each dimension."""
    return tuple(
        _weights(known(as_expr(extent)), [read.indices[d] for read in reads])
        for d, extent in enumerate(tensor.shape)
    )


def _weights(extent: int | None, indices: Iterable[Expr]) -> Weights:
    """The weights of digits that all ``indices`` are numbers of, each digit in its range; of the whole alone where there are no such."""
    forms: list[Linear] = []
    for index in indices:
        form = linear(index) if is_index(index) else None
        if (
            form is None
            or form.constant
            or not all(isinstance(a, Axis) and a.lo is ZERO and c > 0 for a, c in form.terms.items())
        ):
            return (1,)
        forms.append(form)
    factors = sorted({c for form in forms for c in form.terms.values()} - {1})
    found = [1]
    for weight in factors:
        if (
            extent is not None
            and extent % weight == 0
            and all(_ends_below(form, found[-1], weight) for form in forms)
        ):
            found.append(weight)
    top = found[-1]
    return (
        tuple(reversed(found))
        if all(c % top == 0 or c < top for form in forms for c in form.terms.values())
        else (1,)
    )


def _ends_below(form: Linear, low: int, high: int) -> bool:
    """Whether the part of ``form`` between the weights ``low`` and ``high`` is one digit: multiples of ``low`` that stay below ``high``."""
    part = {a: c for a, c in form.terms.items() if low <= c < high}
    rest = [c for c in form.terms.values() if c >= high]
    if high % low or any(c % low for c in part.values()) or any(c % high for c in rest):
        return False
    ends = interval(Linear(part), axis_bounds(a for a in part if isinstance(a, Axis)))
    return ends is not None and ends[1] < high


def _has_window(read: Read, shapes: Sequence[Weights]) -> bool:
    """Whether a digit that ``read`` is at is a sum of axes."""
    pairs = zip(read.indices, shapes, strict=True)
    return any(len(w) > 1 and any(len(free_axes(d)) > 1 for d in _digits(index, w)) for index, w in pairs)


def _digits(index: Expr, weights: Weights) -> list[Expr]:
    """The digits of ``index``."""
    form, found = linear(index), []
    for low, high in zip(weights, (None, *weights), strict=False):
        own = {a: c // low for a, c in form.terms.items() if c >= low and (high is None or c < high)}
        found.append(from_linear(Linear(own)))
    return found


def _at(read: Read, shapes: Sequence[Weights]) -> list[Expr]:
    return [
        d
        for index, w in zip(read.indices, shapes, strict=True)
        for d in (_digits(index, w) if len(w) > 1 else [index])
    ]


def _shaped(tensor: Tensor, shapes: tuple[Weights, ...]) -> Shaped:
    found = _made.get((tensor, shapes))
    if found is None:
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
        found = _made[tensor, shapes] = Shaped(f"{tensor.name}_shaped", axes, Read(tensor, indices))
    return found

"""Patterns that networks are made of: windows, convolutions, softmax, joins, slices, reshapes, contractions, scans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor
from tests.random_expressions import UNARY, Writer


@dataclass(frozen=True)
class Pattern:
    """A way to make a tensor of another one of at least ``rank`` axes, none of them empty."""

    rank: int
    make: Callable[[Writer, str, Tensor], Compute]

    def fits(self, source: Tensor) -> bool:
        return source.ndim >= self.rank and all(int(e) > 0 for e in source.shape)


PATTERNS: list[Pattern] = []


def pattern(rank: int) -> Callable[[Callable[[Writer, str, Tensor], Compute]], object]:
    def register(make: Callable[[Writer, str, Tensor], Compute]) -> object:
        PATTERNS.append(Pattern(rank, make))
        return make

    return register


def replaced(axes: Sequence[object], at: int, index: object) -> tuple[object, ...]:
    return (*axes[:at], index, *axes[at + 1 :])


def some_axis(w: Writer, x: Tensor) -> int:
    return w.number(0, x.ndim - 1)


@pattern(1)
def window(w: Writer, name: str, x: Tensor) -> Compute:
    """Pooling or a convolution along one axis: stride, dilation, padding."""
    at = some_axis(w, x)
    size, stride, pad = int(x.shape[at]), w.number(1, 4), w.number(0, 3)
    taps = w.number(1, min(4, size + 2 * pad))
    dilation = w.number(1, max(1, min(3, (size + 2 * pad - 1) // max(1, taps - 1))))
    extent = (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
    kernel = te.compute((taps,), lambda k: te.sin(w.read((k,)).chosen() + 0.5 * k), f"{name}_kernel")
    k = te.reduce_axis((0, taps), "k")
    kind = w.among("conv", "conv", "max", "first", "mean", "min")

    def body(*axes):
        place = stride * axes[at] + dilation * k - pad
        inside = (place >= 0) & (place < size)
        value = x[replaced(axes, at, place)]
        match kind:
            case "conv":
                return te.sum(value * kernel[k], k, where=inside)
            case "mean":
                return te.sum(te.select(inside, value, 0.0), k) / taps
            case "min":
                return te.minimum(te.min(value, k, where=inside), 3.5)
        found = te.max(value, k, where=inside, ties="first" if kind == "first" else "even")
        return te.maximum(found, -3.5)

    return te.compute(replaced(x.shape, at, extent), body, name)


@pattern(2)
def convolution(w: Writer, name: str, x: Tensor) -> Compute:
    """Two spatial axes or channels and one, stride and padding of each."""
    h, v = int(x.shape[0]), int(x.shape[1])
    s, p = (w.number(1, 3), w.number(1, 3)), (w.number(0, 2), w.number(0, 2))
    # Windows that fit: XLA ends the process on the gradient that JAX derives of one that does not.
    taps = [w.number(1, min(3, n + 2 * pad)) for n, pad in zip((h, v), p, strict=True)]
    out = [(n + 2 * pad - t) // step + 1 for n, t, step, pad in zip((h, v), taps, s, p, strict=True)]
    weights = te.placeholder((2, *taps), x.dtype, "W")
    i, j = te.reduce_axis((0, taps[0]), "i"), te.reduce_axis((0, taps[1]), "j")

    def body(o, y, z):
        a, b = s[0] * y + i - p[0], s[1] * z + j - p[1]
        inside = (a >= 0) & (a < h) & (b >= 0) & (b < v)
        value = x[(a, b, *(0 for _ in x.shape[2:]))]
        return te.sum(value * weights[o, i, j], [i, j], where=inside)

    return te.compute((2, *out), body, name)


@pattern(1)
def softmax(w: Writer, name: str, x: Tensor) -> Compute:
    """With a running maximum, each step a tensor of its own."""
    at = some_axis(w, x)
    k = [te.reduce_axis((0, x.shape[at]), f"k{n}") for n in range(2)]
    rest = (*x.shape[:at], *x.shape[at + 1 :])
    spread = lambda axes, index: (*axes[:at], index, *axes[at:])  # noqa: E731
    without = lambda axes: (*axes[:at], *axes[at + 1 :])  # noqa: E731
    top = te.compute(rest, lambda *axes: te.max(x[spread(axes, k[0])], k[0]), f"{name}_max")
    exp = te.compute(x.shape, lambda *axes: te.exp(x[axes] - top[without(axes)]), f"{name}_exp")
    total = te.compute(rest, lambda *axes: te.sum(exp[spread(axes, k[1])], k[1]), f"{name}_sum")
    if w.often():
        return te.compute(x.shape, lambda *axes: exp[axes] / total[without(axes)], name)
    return te.compute(
        x.shape, lambda *axes: x[axes] - top[without(axes)] - te.log(total[without(axes)]), name
    )


@pattern(1)
def normalised(w: Writer, name: str, x: Tensor) -> Compute:
    """Mean and variance over all axes."""
    axes = lambda: [te.reduce_axis((0, e), f"k{n}") for n, e in enumerate(x.shape)]  # noqa: E731
    count, k, m = math.prod(map(int, x.shape)), axes(), axes()
    mean = te.compute((), lambda: te.sum(x[tuple(k)], k) / count, f"{name}_mean")
    var = te.compute((), lambda: te.sum((x[tuple(m)] - mean[()]) ** 2, m) / count, f"{name}_var")
    return te.compute(x.shape, lambda *i: (x[i] - mean[()]) * te.rsqrt(var[()] + 0.3), name)


@pattern(1)
def joined(w: Writer, name: str, x: Tensor) -> Compute:
    """A concatenation with a mirrored or scaled copy of itself."""
    at = some_axis(w, x)
    size, extra = int(x.shape[at]), w.number(1, int(x.shape[at]))
    mirrored = w.often()

    def body(*axes):
        i = axes[at]
        other = size + extra - 1 - i if mirrored else i - size
        return te.select(i < size, x[replaced(axes, at, i)], 2 * x[replaced(axes, at, other)])

    return te.compute(replaced(x.shape, at, size + extra), body, name)


@pattern(1)
def sliced(w: Writer, name: str, x: Tensor) -> Compute:
    """Padded, strided, reversed, repeated, tiled or rolled along one axis."""
    at = some_axis(w, x)
    size, n = int(x.shape[at]), w.number(1, 3)
    match w.among("pad", "stride", "reverse", "repeat", "tile", "roll", "reflect", "dilate"):
        case "pad":
            extent, index = size + 2 * n, lambda i: (i - n, (i >= n) & (i < size + n))
        case "stride":
            extent, index = (size - 1) // n + 1, lambda i: (n * i, None)
        case "reverse":
            extent, index = size, lambda i: (size - 1 - i, None)
        case "repeat":
            extent, index = n * size, lambda i: (i // n, None)
        case "tile":
            extent, index = n * size + 1, lambda i: (i % size, None)
        case "roll":
            extent, index = size, lambda i: ((i + n) % size, None)
        case "reflect":
            extent, index = size + n, lambda i: (te.minimum(i, te.maximum(2 * size - 2 - i, 0)), None)
        case _:
            extent, index = n * (size - 1) + 1, lambda i: (i // n, i % n == 0)

    def body(*axes):
        place, inside = index(axes[at])
        value = x[replaced(axes, at, place)]
        return value if inside is None else te.select(inside, value, 0.0)

    return te.compute(replaced(x.shape, at, extent), body, name)


@pattern(1)
def reshaped(w: Writer, name: str, x: Tensor) -> Compute:
    """To other extents, row by row; rows that are not full end in zeros."""
    count = math.prod(map(int, x.shape))
    columns = w.number(1, 6)
    rows = -(-count // columns)

    def body(i, j):
        flat, indices = columns * i + j, []
        inside = flat < count
        for extent in reversed(x.shape[1:]):
            indices.append(flat % extent)
            flat = flat // extent
        value = x[(flat, *reversed(indices))]
        return value if rows * columns == count else te.select(inside, value, 0.0)

    return te.compute((rows, columns), body, name)


@pattern(2)
def contraction(w: Writer, name: str, x: Tensor) -> Compute:
    """With an input of its own, or with itself transposed."""
    at = some_axis(w, x)
    size = int(x.shape[at])
    k = te.reduce_axis((0, size), "k")
    columns = w.number(1, 4)
    if w.often():
        weights = te.placeholder((columns, size), x.dtype, "W")
        return te.compute(
            replaced(x.shape, at, columns),
            lambda *i: te.sum(x[replaced(i, at, k)] * weights[i[at], k], k),
            name,
        )
    other = 1 if at == 0 else 0
    rows = int(x.shape[other])
    row = lambda i: tuple(k if n == at else i if n == other else 0 for n in range(x.ndim))  # noqa: E731
    return te.compute((rows, rows), lambda i, j: te.sum(x[row(i)] * x[row(j)], k), name)


@pattern(1)
def accumulated(w: Writer, name: str, x: Tensor) -> Compute:
    """Prefix, suffix and banded reductions along one axis."""
    at = some_axis(w, x)
    size, shift = int(x.shape[at]), w.number(-1, 1)
    k = te.reduce_axis((0, size), "k")
    direction, kind = w.among("<=", ">=", "band"), w.among("sum", "sum", "prod", "max", "min")
    scale = w.among(*UNARY[:3], lambda v: v)

    def body(*axes):
        i = axes[at]
        where = {"<=": k <= i + shift, ">=": k >= i + shift, "band": (k <= i + 1) & (k >= i - 1)}[direction]
        value = scale(x[replaced(axes, at, k)])  # type: ignore[operator]
        match kind:
            case "sum":
                return te.sum(value, k, where)
            case "prod":
                return te.prod(value, k, where)
            case "max":
                return te.maximum(te.max(value, k, where), -3.5)
        return te.minimum(te.min(value, k, where), 3.5)

    return te.compute(x.shape, body, name)


@pattern(1)
def gathered(w: Writer, name: str, x: Tensor) -> Compute:
    """Rows at positions that are data, zero where they are out of range."""
    at = some_axis(w, x)
    size, rows = int(x.shape[at]), w.number(1, 5)
    table = te.placeholder((rows,), "int32", "J")

    def body(*axes):
        row = table[axes[at]]
        return te.select((row >= 0) & (row < size), x[replaced(axes, at, row)], 0.0) * (axes[at] + 1)

    return te.compute(replaced(x.shape, at, rows), body, name)


@pattern(0)
def pointwise(w: Writer, name: str, x: Tensor) -> Compute:
    scale, other = w.among(*UNARY), w.among(*UNARY)
    return te.compute(x.shape, lambda *i: scale(x[i]) * other(x[i]) + 0.5 * x[i], name)  # type: ignore[operator]


LINEAR = (convolution, joined, sliced, reshaped, contraction, gathered)
"""Those that complex numbers can go through."""

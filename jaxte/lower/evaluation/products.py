"""The values of products: einsum, convolutions tap by tap, Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxte.lower.arrays import products
from jaxte.lower.evaluation.frame import Frame, Rules, Value
from jaxte.lower.evaluation.views import spread
from jaxte.meaning.rounding import converted, widened


def _einsum(node: products.Einsum, at: Frame) -> Value:
    factors = [widened(converted(f, node.kind)) for f in at.values(node.factors)]
    return converted(np.asarray(np.einsum(node.spec, *factors)), node.kind)


def _tensordot(node: products.Tensordot, at: Frame) -> Value:
    lhs, rhs = (widened(v) for v in at.values((node.lhs, node.rhs)))
    return converted(np.tensordot(lhs, rhs, 1), node.kind)


def _convolution(node: products.Convolution, at: Frame) -> Value:
    """The sum over taps of shifted slices of the padded array, times the kernel's matrix of that tap, group by group."""
    of_lhs, of_rhs, of_out = node.dimensions
    spatial = [c for c in of_rhs if c not in "OI"]
    lhs = _in_order(widened(at.value(node.lhs)), of_lhs, ["N", "C", *spatial])
    rhs = _in_order(widened(at.value(node.rhs)), of_rhs, ["O", "I", *spatial])
    for n, (before, behind) in enumerate(node.padding):
        lhs = spread(lhs, 2 + n, node.lhs_dilation[n] - 1, at.size(before), at.size(behind), 0)
    extents = dict(zip(of_out, at.shape(node.shape), strict=True))
    counts = [extents[c] for c in spatial]
    groups = at.size(node.groups)
    grouped = lhs.reshape(len(lhs), groups, lhs.shape[1] // groups, *lhs.shape[2:])
    matrices = rhs.reshape(groups, len(rhs) // groups, *rhs.shape[1:])
    total = np.zeros((len(lhs), groups, matrices.shape[1], *counts), lhs.dtype)
    for tap in np.ndindex(*rhs.shape[2:]):
        window = _window(grouped, tap, counts, node)
        total += np.einsum("ngi...,goi->ngo...", window, matrices[(slice(None),) * 3 + tap])
    result = total.reshape(len(lhs), len(rhs), *counts)
    order = "NC" + "".join(spatial)
    return converted(_in_order(result, order, list(of_out)), node.kind)


def _window(
    array: np.ndarray, tap: Sequence[int], counts: Sequence[int], node: products.Convolution
) -> np.ndarray:
    """What the kernel's element at ``tap`` meets at each position of the result."""
    steps = zip(tap, node.rhs_dilation, node.strides, counts, strict=True)
    own = [slice(k * d, k * d + s * (count - 1) + 1, s) for k, d, s, count in steps]
    return array[(slice(None),) * 3 + tuple(own)]


def _in_order(array: np.ndarray, own: str, wanted: Sequence[str]) -> np.ndarray:
    return array.transpose([own.index(c) for c in wanted])


def _fourier(node: products.Fourier, at: Frame) -> Value:
    array = widened(at.value(node.array))
    *others, last = list(zip(node.axes, node.points, strict=True))
    inverse = node.function.startswith("i")
    if node.function == "rfft":
        array = np.fft.rfft(array, last[1], last[0])
        last_axes = others
    else:
        last_axes = others if node.function == "irfft" else [*others, last]
    for axis, points in last_axes:
        array = np.fft.ifft(array, points, axis) if inverse else np.fft.fft(array, points, axis)
    if node.function == "irfft":
        array = np.fft.irfft(array, last[1], last[0])
    return converted(array, node.kind)


RULES: Rules = {
    products.Einsum: _einsum,
    products.Tensordot: _tensordot,
    products.Convolution: _convolution,
    products.Fourier: _fourier,
}

"""The values of reductions and windows, element after element where no function of NumPy is meant, and of products, convolutions tap by tap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxte.lang.expr import Call, Const, Expr, Reducer
from jaxte.lang.walk import postorder
from jaxte.lower.arrays import products
from jaxte.meaning.rounding import converted, operated, storage, widened
from tests.lower.evaluation.frame import Frame, Rules, Value
from tests.lower.evaluation.views import spread

UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}


def combined(reducer: Reducer, lhs: Sequence[np.ndarray], rhs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What ``reducer`` makes of two arrays, or of two tuples of them."""
    known: dict[Expr, np.ndarray] = {}
    for symbol, array in zip((*reducer.lhs, *reducer.rhs), (*lhs, *rhs), strict=True):
        known[symbol] = converted(np.asarray(array), symbol.kind)
    for node in postorder(*reducer.results):
        match node:
            case Const(value):
                known[node] = np.array(value, storage(node.kind))
            case Call(op, args):
                kinds = [a.kind for a in args]
                known[node] = np.asarray(operated(op, [known[a] for a in args], kinds, node.kind))
    return [known[result] for result in reducer.results]


def _reduced(node: products.Reduced, at: Frame) -> Value:
    array = widened(converted(at.value(node.array), node.kind))
    start = {} if node.start is None else {"initial": widened(at.value(node.start)).item()}
    found = UFUNCS[node.function].reduce(array, node.axes, keepdims=node.keep, **start)
    return converted(np.asarray(found), node.kind)


def _position(node: products.Position, at: Frame) -> Value:
    return getattr(np, node.function)(at.value(node.array), node.axis).astype(node.dtype)


def _combined(node: products.Combined, at: Frame) -> Value:
    arrays = [np.moveaxis(a, node.axes, range(len(node.axes))) for a in at.values(node.arrays)]
    state = [np.broadcast_to(s, at.shape(node.item_shape)) for s in at.values(node.starts)]
    for point in np.ndindex(*arrays[0].shape[: len(node.axes)]):
        state = combined(node.reducer, state, [a[point] for a in arrays])
    return tuple(state) if node.is_tuple else np.asarray(state[0])


def _reduce_window(node: products.ReduceWindow, at: Frame) -> Value:
    array, start = (widened(v) for v in at.values((node.array, node.start)))
    for n, (before, behind) in enumerate(node.padding):
        array = spread(array, n, node.spacing[n] - 1, at.size(before), at.size(behind), start)
    counts = at.shape(node.shape)
    total = np.full(counts, start, array.dtype)
    for tap in np.ndindex(*node.sizes):
        begins = [k * d for k, d in zip(tap, node.dilation, strict=True)]
        ends = [b + s * (c - 1) + 1 for b, s, c in zip(begins, node.strides, counts, strict=True)]
        window = array[tuple(map(slice, begins, ends, node.strides))]
        total = UFUNCS[node.function](total, window)
    return converted(total, node.kind)


def _cumulative(node: products.Cumulative, at: Frame) -> Value:
    array = widened(at.value(node.array))
    turned = np.flip(array, node.axis) if node.reverse else array
    found = UFUNCS[node.function].accumulate(turned, node.axis)
    return converted(np.flip(found, node.axis) if node.reverse else found, node.kind)


def _prefixes(node: products.Prefixes, at: Frame) -> Value:
    arrays = [np.moveaxis(a, node.axis, 0) for a in at.values(node.arrays)]
    positions = list(range(len(arrays[0])))
    found: dict[int, list[np.ndarray]] = {}
    state: list[np.ndarray] = []
    for n in reversed(positions) if node.reverse else positions:
        own = [a[n] for a in arrays]
        if state:  # what comes first is combined from the left, in whichever direction the scan runs
            state = combined(node.reducer, *((own, state) if node.reverse else (state, own)))
        else:
            state = own
        found[n] = state
    if not positions:
        return tuple(at.values(node.arrays)) if node.is_tuple else at.value(node.arrays[0])
    stacked = [np.stack([found[n][k] for n in positions], node.axis) for k in range(len(arrays))]
    return tuple(stacked) if node.is_tuple else stacked[0]


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
    if node.by_batch:
        grouped = lhs.reshape(groups, len(lhs) // groups, *lhs.shape[1:]).swapaxes(0, 1)
    else:
        grouped = lhs.reshape(len(lhs), groups, lhs.shape[1] // groups, *lhs.shape[2:])
    matrices = rhs.reshape(groups, len(rhs) // groups, *rhs.shape[1:])
    total = np.zeros((len(grouped), groups, matrices.shape[1], *counts), lhs.dtype)
    for tap in np.ndindex(*rhs.shape[2:]):
        window = _window(grouped, tap, counts, node)
        total += np.einsum("ngi...,goi->ngo...", window, matrices[(slice(None),) * 3 + tap])
    result = total.reshape(len(grouped), len(rhs), *counts)
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
    products.Reduced: _reduced,
    products.Position: _position,
    products.Combined: _combined,
    products.ReduceWindow: _reduce_window,
    products.Cumulative: _cumulative,
    products.Prefixes: _prefixes,
    products.Einsum: _einsum,
    products.Tensordot: _tensordot,
    products.Convolution: _convolution,
    products.Fourier: _fourier,
}

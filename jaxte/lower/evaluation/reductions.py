"""The values of reductions, windows and cumulative reductions: element after element, where no function of NumPy is meant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxte.lang.expr import Call, Const, Expr, Reducer
from jaxte.lang.walk import postorder
from jaxte.lower.arrays import reductions
from jaxte.lower.evaluation.frame import Frame, Rules, Value
from jaxte.lower.evaluation.views import spread
from jaxte.meaning.rounding import converted, operated, storage, widened

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


def _reduced(node: reductions.Reduced, at: Frame) -> Value:
    array = widened(converted(at.value(node.array), node.kind))
    start = {} if node.start is None else {"initial": widened(at.value(node.start)).item()}
    found = UFUNCS[node.function].reduce(array, node.axes, keepdims=node.keep, **start)
    return converted(np.asarray(found), node.kind)


def _position(node: reductions.Position, at: Frame) -> Value:
    return getattr(np, node.function)(at.value(node.array), node.axis).astype(node.dtype)


def _combined(node: reductions.Combined, at: Frame) -> Value:
    arrays = [np.moveaxis(a, node.axes, range(len(node.axes))) for a in at.values(node.arrays)]
    state = [np.broadcast_to(s, at.shape(node.item_shape)) for s in at.values(node.starts)]
    for point in np.ndindex(*arrays[0].shape[: len(node.axes)]):
        state = combined(node.reducer, state, [a[point] for a in arrays])
    return tuple(state) if node.is_tuple else np.asarray(state[0])


def _reduce_window(node: reductions.ReduceWindow, at: Frame) -> Value:
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


def _cumulative(node: reductions.Cumulative, at: Frame) -> Value:
    array = widened(at.value(node.array))
    turned = np.flip(array, node.axis) if node.reverse else array
    found = UFUNCS[node.function].accumulate(turned, node.axis)
    return converted(np.flip(found, node.axis) if node.reverse else found, node.kind)


def _prefixes(node: reductions.Prefixes, at: Frame) -> Value:
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


RULES: Rules = {
    reductions.Reduced: _reduced,
    reductions.Position: _position,
    reductions.Combined: _combined,
    reductions.ReduceWindow: _reduce_window,
    reductions.Cumulative: _cumulative,
    reductions.Prefixes: _prefixes,
}

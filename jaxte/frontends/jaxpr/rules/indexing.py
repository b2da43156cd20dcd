"""Gathers, scatters and slices whose positions are known: reads and choices at index expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.table import Reads, Site, Unraised, raises
from jaxte.frontends.jaxpr.values.positions import decided, period_along, positions_in, quotient
from jaxte.frontends.jaxpr.values.value import Value
from jaxte.lang import operators as ops
from jaxte.lang.expr import TRUE, Expr, as_expr, call

_SCATTERS = {
    "scatter": None,
    "scatter-add": ops.ADD,
    "scatter-sub": ops.SUBTRACT,
    "scatter-mul": ops.MULTIPLY,
    "scatter-max": ops.MAXIMUM,
    "scatter-min": ops.MINIMUM,
}


def _known(indices: Value) -> np.ndarray:
    if indices.known is None:
        raise Unraised("positions that are data")
    return np.asarray(indices.known).astype(np.int64)


def _mode(site: Site) -> str:
    return str(site.params["mode"]).rpartition(".")[2]


@raises("gather", reads=Reads.VIEW, notation="`x[e(i), j]` where the positions are an index expression `e`")
def _gather(site: Site, x: Value, indices: Value) -> Value:
    numbers, sizes = site.params["dimension_numbers"], site.params["slice_sizes"]
    rows = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    starts = _inside(_known(indices), x.shape, sizes, numbers.start_index_map, _mode(site))
    batch = [d for d in range(len(site.shape)) if d not in numbers.offset_dims]
    window = [d for d in range(x.ndim) if d not in numbers.collapsed_slice_dims and d not in rows]

    def element(*i: Any) -> Expr:
        index: list[Any] = [i[batch[rows[d]]] if d in rows else 0 for d in range(x.ndim)]
        for d, own in zip(window, numbers.offset_dims, strict=True):
            index[d] = i[own]
        for component, d in enumerate(numbers.start_index_map):
            at, period = [i[b] for b in batch], period_along(x.body, x.axes[d])
            start = positions_in(starts[..., component], at, x.shape[d], period)
            if start is None:
                raise Unraised("positions that follow no index expression")
            index[d] = start + index[d]
        return x[tuple(index)]

    return site.define(element)


def _inside(
    starts: np.ndarray, shape: Sequence[int], sizes: Sequence[int], into: Sequence[int], mode: str
) -> np.ndarray:
    """Positions held inside as ``mode`` says; one that is dropped is no element."""
    last = np.array([shape[d] - sizes[d] for d in into], dtype=np.int64)
    if mode == "CLIP":
        return np.clip(starts, 0, last)
    if np.any(starts < 0) or np.any(starts > last):
        raise Unraised("positions outside of the array")
    return starts


@raises("dynamic_slice", reads=Reads.VIEW, notation="`x[start + i]`")
def _dynamic_slice(site: Site, x: Value, *starts: Value) -> Value:
    held = _held([int(_known(s)) for s in starts[: x.ndim]], x.shape, site.shape)
    return site.define(lambda *i: x[tuple(s + k for s, k in zip(held, i, strict=True))])


@raises(
    "dynamic_update_slice", reads=Reads.VIEW, notation="`select(start <= i < start + n, y[i - start], x[i])`"
)
def _dynamic_update_slice(site: Site, x: Value, new: Value, *starts: Value) -> Value:
    held = _held([int(_known(s)) for s in starts[: x.ndim]], x.shape, new.shape)
    return site.define(lambda *i: _placed(x, new, held, i))


def _held(starts: Sequence[int], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [min(max(s, 0), n - m) for s, n, m in zip(starts, shape, sizes, strict=True)]


def _placed(x: Value, new: Value, starts: Sequence[int], i: Sequence[Any]) -> Expr:
    inside: Expr = TRUE
    for k, start, extent in zip(i, starts, new.shape, strict=True):
        inside = call(ops.AND, inside, _between(as_expr(k), start, start + extent))
    index = [as_expr(0) if n == 1 else k - s for k, s, n in zip(i, starts, new.shape, strict=True)]
    return call(ops.SELECT, inside, new[tuple(index)], x[tuple(i)])


def _between(k: Expr, low: int, high: int) -> Expr:
    return call(ops.AND, decided(k >= low), decided(k < high))


@raises(
    *_SCATTERS,
    reads=Reads.VIEW,
    notation="`select(i is e(s), y[s], x[i])` where each position is written once",
)
def _scatter(site: Site, x: Value, indices: Value, new: Value) -> Value:
    numbers = site.params["dimension_numbers"]
    if numbers.operand_batching_dims:
        raise Unraised("scatters into each row of a batch")
    if site.params["primitive"] == "scatter" and _computes(site.params["update_jaxpr"]):
        raise Unraised("a function of the user at positions")
    window_dims = [d for d in range(x.ndim) if d not in numbers.inserted_window_dims]
    update_window = numbers.update_window_dims
    sizes = [1] * x.ndim
    for d, own in zip(window_dims, update_window, strict=True):
        sizes[d] = new.shape[own]
    starts = _inside(_known(indices), x.shape, sizes, numbers.scatter_dims_to_operand_dims, _mode(site))
    batch = [d for d in range(new.ndim) if d not in update_window]
    op = _SCATTERS[site.params["primitive"]]
    written = [_line(starts[..., n], sizes[d]) for n, d in enumerate(numbers.scatter_dims_to_operand_dims)]
    own_axis = [axis for axis, _, _ in written if axis is not None]
    if len(set(own_axis)) != len(own_axis) or any(
        new.shape[batch[a]] > 1 and a not in own_axis for a in range(len(batch))
    ):
        raise Unraised("positions that may be written several times")

    def element(*i: Any) -> Expr:
        inside: Expr = TRUE
        index: list[Any] = [as_expr(0)] * new.ndim
        for d, own in zip(window_dims, update_window, strict=True):
            index[own] = as_expr(i[d])
        for d, (axis, step, start) in zip(numbers.scatter_dims_to_operand_dims, written, strict=True):
            place = as_expr(i[d]) - start
            if axis is None:
                inside = call(ops.AND, inside, _between(as_expr(i[d]), start, start + sizes[d]))
                if d in window_dims:
                    index[update_window[window_dims.index(d)]] = place if sizes[d] > 1 else as_expr(0)
                continue
            count, place = new.shape[batch[axis]], place if step > 0 else -place
            inside = call(ops.AND, inside, _between(place, 0, abs(step) * (count - 1) + 1))
            if abs(step) > 1:
                inside = call(ops.AND, inside, place % abs(step) == 0)
            index[batch[axis]] = quotient(place, abs(step)) if count > 1 else as_expr(0)
        old, value = x[tuple(i)], new[tuple(index)]
        return call(ops.SELECT, inside, value if op is None else call(op, old, value), old)

    return site.define(element)


def _computes(update: Any) -> bool:
    """Whether what is written is computed from what stands there, as by ``x.at[i].apply(f)``."""
    return update is not None and bool(update.eqns)


def _line(starts: np.ndarray, size: int) -> tuple[int | None, int, int]:
    """The axis of the updates along which positions go, by how much, and from where; one axis, one position at a time."""
    moving = [d for d in range(starts.ndim) if starts.shape[d] > 1 and np.any(np.diff(starts, axis=d))]
    origin = int(starts.reshape(-1)[0]) if starts.size else 0
    if not moving:
        return None, 0, origin
    step = int(np.diff(np.moveaxis(starts, moving[0], 0)[:2].reshape(2, -1)[:, 0])[0])
    line = origin + step * np.arange(starts.shape[moving[0]])
    shape = [-1 if d == moving[0] else 1 for d in range(starts.ndim)]
    if len(moving) > 1 or size != 1 or step == 0 or np.any(starts != line.reshape(shape)):
        raise Unraised("positions that follow no index expression")
    return moving[0], step, origin

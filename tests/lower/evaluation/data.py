"""The values of gathers, scatters, slices at positions that are data, of calls, and of kernels block by block.

Facts that a node states of its positions, and that XLA trusts, are asked here: that they are inside, and that no two are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxte.lower.arrays import data
from jaxte.lower.arrays.node import ArrayError, Node
from jaxte.meaning.rounding import converted, widened
from tests.lower.evaluation.frame import Frame, Rules, Value
from tests.lower.evaluation.loops import all_turns

_METHODS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
_TRUSTED = ("", data.IN_BOUNDS)


def _gather(node: data.Gather, at: Frame) -> Value:
    array = at.value(node.array)
    addresses, inside = _addresses(array, node.positions, at.shape(node.shape), node.mode == data.CLIP, at)
    if node.mode in _TRUSTED and not inside.all():
        raise ArrayError("a position is outside, where all are said to be inside")
    fill = _outside(array.dtype) if node.fill is None else at.value(node.fill)
    if not array.size:
        return np.full(addresses.shape, fill, array.dtype)
    return np.where(inside, array.reshape(-1)[addresses], fill.astype(array.dtype))


def _outside(dtype: np.dtype) -> np.ndarray:
    """What JAX reads outside where no other value is given."""
    if dtype.kind in "iub":
        return np.array(np.iinfo(dtype).min if dtype.kind == "i" else 1).astype(dtype)
    return np.array(np.nan)


def _scatter(node: data.Scatter, at: Frame) -> Value:
    array = at.value(node.array)
    met = at.shape(data.Gather(node.array, node.positions).shape)
    addresses, inside = _addresses(array, node.positions, met, False, at)
    if node.mode in _TRUSTED and not inside.all():
        raise ArrayError("a position is outside, where all are said to be inside")
    there = addresses[inside]
    if "unique_indices" in node.flags and len(np.unique(there)) < there.size:
        raise ArrayError("two positions are one, where no two are said to be")
    values = np.broadcast_to(widened(at.value(node.values)), met)[inside]
    flat = widened(array).reshape(-1).copy()
    if node.method == "set":
        flat[there] = values
    else:
        _METHODS[node.method].at(flat, there, values.astype(flat.dtype))
    return converted(flat.reshape(array.shape), node.kind)


def _addresses(
    array: np.ndarray, positions: Sequence[Node | None], met: tuple[int, ...], clip: bool, at: Frame
) -> tuple[np.ndarray, np.ndarray]:
    """Where in the flat array each element of ``met`` lies, and whether it is inside."""
    index: list[slice | np.ndarray] = []
    inside = np.array(True)
    for position, extent in zip(positions, array.shape, strict=False):
        if position is None:
            index.append(slice(None))
            continue
        own = at.value(position).astype(np.int64)
        is_inside = (own >= 0) & (own < extent)
        inside = inside | False if clip else inside & is_inside
        index.append(np.clip(own, 0, extent - 1) if clip else np.where(is_inside, own, 0))
        inside = np.broadcast_to(inside, np.broadcast_shapes(inside.shape, own.shape))
    given = [n for n, p in enumerate(positions) if p is not None]
    before = given[0] if given[-1] - given[0] + 1 == len(given) else 0
    behind = len(met) - before - inside.ndim
    mask = np.broadcast_to(inside.reshape((1,) * before + inside.shape + (1,) * behind), met)
    if not array.size:
        return np.zeros(met, np.int64), mask
    return np.arange(array.size).reshape(array.shape)[tuple(index)], mask


def _one_hot(node: data.OneHot, at: Frame) -> Value:
    positions = at.value(node.positions)[..., None]
    return converted(positions == np.arange(at.size(node.extent)), node.kind)


def _if_finite(node: data.IfFinite, at: Frame) -> Value:
    return at.value(node.array if np.isfinite(at.value(node.tested).sum()) else node.otherwise)


def _updated(node: data.Updated, at: Frame) -> Value:
    array, part = at.value(node.array).copy(), at.value(node.part)
    array[tuple(slice(s, s + e) for s, e in zip(node.start, part.shape, strict=True))] = part
    return array


def _call(node: data.Call, at: Frame) -> Value:
    return at.functions[node.function](*at.values(node.args))


def _output(node: data.Output, at: Frame) -> Value:
    outputs = at.value(node.outputs)
    return np.asarray(outputs[node.position] if isinstance(outputs, (tuple, list)) else outputs)


def _dynamic_slice(node: data.DynamicSlice, at: Frame) -> Value:
    array = at.value(node.array)
    starts = [0 if s is None else int(at.value(s)) for s in node.starts]
    return array[_block(starts, node.sizes, array.shape)]


def _dynamic_index(node: data.DynamicIndex, at: Frame) -> Value:
    array = at.value(node.array)
    position = int(np.clip(at.value(node.position), 0, array.shape[node.axis] - 1))
    return np.take(array, position, node.axis)


def _dynamic_update(node: data.DynamicUpdate, at: Frame) -> Value:
    array, part = at.value(node.array).copy(), at.value(node.part)
    starts = [int(at.value(node.start)) if n == node.axis else 0 for n in range(array.ndim)]
    array[_block(starts, part.shape, array.shape)] = part
    return array


def _block(starts: Sequence[int], sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """The block of ``sizes`` from ``starts`` on, which XLA would move inside without a word."""
    for start, size, extent in zip(starts, sizes, shape, strict=True):
        if not 0 <= start <= extent - size:
            raise ArrayError(f"a block of {size} from {start} on leaves a dimension of {extent}")
    return tuple(slice(s, s + e) for s, e in zip(starts, sizes, strict=True))


def _loaded(node: data.Loaded, at: Frame) -> Value:
    array = at.value(node.array)
    begins = [0 if s is None else int(at.value(s)) for s in node.starts]
    return array[tuple(slice(b, b + size) for b, size in zip(begins, node.sizes, strict=True))]


def _kernel(node: data.Kernel, at: Frame) -> Value:
    function, size = at.functions[node.function], node.size
    blocks, given = at.values(node.blocks), at.values((*node.wholes, *node.windows))
    turns = []
    for n in range(node.count):
        own = [b[n * size : (n + 1) * size] for b in blocks]
        turns.append(function(np.asarray(n * size, "int32"), *own, *given))
    return all_turns(turns)


RULES: Rules = {
    data.Gather: _gather,
    data.Scatter: _scatter,
    data.OneHot: _one_hot,
    data.IfFinite: _if_finite,
    data.Updated: _updated,
    data.Call: _call,
    data.Output: _output,
    data.DynamicSlice: _dynamic_slice,
    data.DynamicIndex: _dynamic_index,
    data.DynamicUpdate: _dynamic_update,
    data.Loaded: _loaded,
    data.Kernel: _kernel,
}

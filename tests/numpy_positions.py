"""JAX's reads and writes at positions that are data, in NumPy, and what a rule refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

Rule = Callable[..., Any]


class Refused(Exception):
    """An operation, or its operands, that XLA shall compute."""


def refuse(condition: Any) -> None:
    if condition:
        raise Refused


def _windows(
    shape: Sequence[int],
    sizes: Sequence[int],
    indices: np.ndarray,
    known: Sequence[int],
    batched: Any,
    mode: Any,
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """For each axis of an array, where each element of each window is; and which windows are within the array."""
    batch = indices.shape[:-1]
    inside, places = np.ones(batch, bool), []
    for axis, (extent, size) in enumerate(zip(shape, sizes, strict=True)):
        if axis in known:
            start = indices[..., known.index(axis)].astype(np.int64)
        elif axis in batched[0]:
            own = batched[1][batched[0].index(axis)]
            start = np.broadcast_to(
                np.arange(extent).reshape([-1 if n == own else 1 for n in range(len(batch))]), batch
            )
        else:
            start = np.zeros(batch, np.int64)
        inside = inside & (start >= 0) & (start <= extent - size)
        steps = np.arange(size).reshape([-1 if n == axis else 1 for n in range(len(shape))])
        places.append(np.clip(start, 0, extent - size).reshape((*batch, *[1] * len(shape))) + steps)
    return tuple(places), inside if mode == GatherScatterMode.FILL_OR_DROP else np.ones(batch, bool)


def gathered(
    x: np.ndarray,
    indices: np.ndarray,
    dimension_numbers: Any,
    slice_sizes: Any,
    mode: Any,
    fill_value: Any,
    **_: Any,
) -> np.ndarray:
    d = dimension_numbers
    batched = (d.operand_batching_dims, d.start_indices_batching_dims)
    places, inside = _windows(x.shape, slice_sizes, indices, d.start_index_map, batched, mode)
    found = x[places] if x.ndim else np.broadcast_to(x, indices.shape[:-1])
    if not inside.all():
        lowest = {"i": lambda t: np.iinfo(t).min, "u": lambda t: np.iinfo(t).max, "b": lambda t: True}
        other = fill_value if fill_value is not None else lowest.get(x.dtype.kind, lambda t: np.nan)(x.dtype)
        found = np.where(inside.reshape((*inside.shape, *[1] * x.ndim)), found, x.dtype.type(other))
    left_out = {*d.collapsed_slice_dims, *d.operand_batching_dims}
    found = found.squeeze(tuple(inside.ndim + n for n in left_out))
    return np.moveaxis(found, range(inside.ndim, found.ndim), d.offset_dims)


def scattered(fn: np.ufunc | None) -> Rule:
    def rule(
        x: np.ndarray,
        indices: np.ndarray,
        updates: np.ndarray,
        dimension_numbers: Any,
        mode: Any,
        **options: Any,
    ) -> np.ndarray:
        d = dimension_numbers
        # a function of one's own at positions
        refuse(fn is None and options["update_jaxpr"] is not None)
        refuse(x.ndim == 0)
        left_out = sorted((*d.inserted_window_dims, *d.operand_batching_dims))
        kept = [n for n in range(x.ndim) if n not in left_out]
        sizes = [1] * x.ndim
        for axis, own in zip(kept, d.update_window_dims, strict=True):
            sizes[axis] = updates.shape[own]
        batched = (d.operand_batching_dims, d.scatter_indices_batching_dims)
        known = d.scatter_dims_to_operand_dims
        # What a promise does not keep is left out as well.
        drop = mode if mode == GatherScatterMode.CLIP else GatherScatterMode.FILL_OR_DROP
        places, inside = _windows(x.shape, sizes, indices, known, batched, drop)
        moved = np.moveaxis(updates, d.update_window_dims, range(inside.ndim, updates.ndim))
        new = moved.reshape((*inside.shape, *sizes))
        out, at = x.copy(), tuple(np.broadcast_to(p, new.shape)[inside] for p in places)
        if fn is None:
            out[at] = new[inside]
        else:
            fn.at(out, at, new[inside])
        return out

    return rule

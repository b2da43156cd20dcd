"""JAX's convolutions and reductions in windows, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.numpy_positions import Rule, refuse


def padded(x: np.ndarray, value: Any, padding_config: Any) -> np.ndarray:
    """Negative numbers at an edge leave elements out; interior ones stand between elements."""
    for axis, (low, high, between) in enumerate(padding_config):
        size = x.shape[axis]
        shape = list(x.shape)
        shape[axis] = size + max(size - 1, 0) * between
        spaced = np.full(shape, value, x.dtype)
        spaced[(slice(None),) * axis + (slice(None, None, between + 1),)] = x
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(low, 0), max(high, 0))
        wide = np.pad(spaced, widths, constant_values=value)
        x = wide[(slice(None),) * axis + (slice(max(-low, 0), wide.shape[axis] - max(-high, 0)),)]
    return x


def _windows(
    x: np.ndarray, sizes: Sequence[int], strides: Sequence[int], apart: Sequence[int], first: int = 0
) -> np.ndarray:
    """The windows over the axes from ``first`` on, their elements along as many axes at the end."""
    reach = [(size - 1) * step + 1 for size, step in zip(sizes, apart, strict=True)]
    axes = tuple(range(first, x.ndim))
    refuse(any(x.shape[n] < r for n, r in zip(axes, reach, strict=True)))
    found = sliding_window_view(x, tuple(reach), axis=axes)
    taken = [slice(None, None, s) for s in strides] + [slice(None, None, s) for s in apart]
    return found[(slice(None),) * first + tuple(taken)]


def reduced_in_windows(fn: np.ufunc, lowest: Any) -> Rule:
    def rule(
        x: np.ndarray,
        window_dimensions: Any,
        window_strides: Any,
        padding: Any,
        base_dilation: Any,
        window_dilation: Any,
    ) -> np.ndarray:
        config = [(low, high, d - 1) for (low, high), d in zip(padding, base_dilation, strict=True)]
        wide = padded(x, lowest(x.dtype), config)
        windows = _windows(wide, window_dimensions, window_strides, window_dilation)
        return fn.reduce(windows, axis=tuple(range(x.ndim, 2 * x.ndim)), dtype=x.dtype)  # type: ignore[no-any-return]

    return rule


def convolved(
    x: np.ndarray,
    w: np.ndarray,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    preferred_element_type: Any,
    **_: Any,
) -> np.ndarray:
    """A product of windows and kernel for each group."""
    d, groups = dimension_numbers, max(feature_group_count, batch_group_count)
    dtype = preferred_element_type or x.dtype
    config = [(0, 0, 0)] * 2 + [(*p, s - 1) for p, s in zip(padding, lhs_dilation, strict=True)]
    wide = padded(np.transpose(x, d.lhs_spec).astype(dtype), 0, config)
    kernel = np.transpose(w, d.rhs_spec).astype(dtype)
    windows = _windows(wide, kernel.shape[2:], window_strides, rhs_dilation, first=2)
    refuse(windows.size > 50_000_000)
    rank = x.ndim - 2
    parts = np.split(windows, groups, 1 if batch_group_count == 1 else 0)
    out = []
    for own, taps in zip(parts, np.split(kernel, groups, 0), strict=True):
        # batch, features, places, taps -> batch and places by features and taps
        rows = np.moveaxis(own, 1, 1 + rank).reshape(-1, prod(taps.shape[1:]))
        found = rows @ taps.reshape(len(taps), -1).T
        out.append(np.moveaxis(found.reshape(own.shape[0], *own.shape[2 : 2 + rank], -1), -1, 1))
    return np.transpose(np.concatenate(out, 1), np.argsort(d.out_spec))

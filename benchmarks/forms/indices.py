"""Windows by advanced indexing: index arrays of positions, one axis of them for the windows and one for their taps."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def places(length: int, size: int, stride: int = 1, dilation: int = 1) -> Any:
    """Where the taps of each window along an axis of ``length`` elements lie: shape (windows, size)."""
    count = (length - dilation * (size - 1) - 1) // stride + 1
    return stride * jnp.arange(count)[:, None] + dilation * jnp.arange(size)


def windows(
    x: Any, size: int, stride: int = 1, padding: int = 0, dilation: int = 1, fill: float = 0.0
) -> Any:
    """x[..., stride * i + dilation * p - padding, stride * j + dilation * q - padding], ``fill`` outside: (..., i, j, p, q)."""
    widths = [(0, 0)] * (x.ndim - 2) + [(padding, padding)] * 2
    x = jnp.pad(x, widths, constant_values=fill)
    rows, columns = (places(length, size, stride, dilation) for length in x.shape[-2:])
    return x[..., rows[:, None, :, None], columns[:, None]]

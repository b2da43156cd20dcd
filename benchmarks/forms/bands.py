"""Banded products by blocks of rows: a dense product for each, then a skew by reshape.

Row r of a block of R rows meets the keys r, ..., r + K - 1 among the block's R + K - 1. Entry (r, r + k) of the dense
product, R + K columns wide, stands at r (R + K) + r + k = r (R + K + 1) + k: a reshape of the padded block to rows one wider
makes bands columns.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def blocks(x: Any, rows: int, window: int) -> Any:
    """(heads, n + window - 1, d) to (heads, blocks, rows + window, d), each with the keys that its rows meet."""
    heads, length, d = x.shape
    count = (length - window + 1) // rows
    spans = -(-(rows + window) // rows)
    x = jnp.pad(x, ((0, 0), (0, (count + spans - 1) * rows - length), (0, 0)))
    x = x.reshape(heads, count + spans - 1, rows, d)
    parts = [x[:, s : s + count] for s in range(spans)]
    return jnp.concatenate(parts, 2)[:, :, : rows + window]


def scores(q: Any, keys: Any, window: int, rows: int = 64) -> Any:
    """s[h,i,k] = sum_d q[h,i,d] keys[h,i+k,d] for keys padded to n + window - 1 rows."""
    heads, n, d = q.shape
    dense = jnp.einsum("hbrd,hbkd->hbrk", q.reshape(heads, n // rows, rows, d), blocks(keys, rows, window))
    width = rows + window
    flat = jnp.pad(dense.reshape(heads, n // rows, rows * width), ((0, 0), (0, 0), (0, rows)))
    return flat.reshape(heads, n // rows, rows, width + 1)[..., :window].reshape(heads, n, window)


def shifted(p: Any, values: Any) -> Any:
    """o[h,i,d] = sum_k p[h,i,k] values[h,i+k,d] for values padded to n + window - 1 rows: a slice for each k, and one loop over all."""
    n = p.shape[1]
    return sum(p[:, :, k, None] * values[:, k : k + n] for k in range(p.shape[2]))


def shifted_back(p: Any, h: Any) -> Any:
    """The gradient of :func:`shifted` for its values: sum_k p[:,j-k,k] h[:,j-k,:] at row j."""
    window = p.shape[2]
    rows = p.shape[1] + window - 1
    p, h = (jnp.pad(x, ((0, 0), (window - 1, window - 1), (0, 0))) for x in (p, h))
    starts = [(window - 1 - k, k) for k in range(window)]
    return sum(p[:, s : s + rows, k, None] * h[:, s : s + rows] for s, k in starts)

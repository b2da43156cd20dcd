"""Depthwise convolution of stride 1 by shifted slices, forward and both gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp


def taps(x: Any, size: int, padding: int) -> Iterator[tuple[int, int, Any]]:
    """Each tap of a square window with the slice of ``x`` that it meets."""
    h, w = (n + 2 * padding - size + 1 for n in x.shape[2:])
    x = jnp.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding))) if padding else x
    for p in range(size):
        for q in range(size):
            yield p, q, x[:, :, p : p + h, q : q + w]


def correlate(x: Any, w: Any, padding: int) -> Any:
    """y[n,c,i,j] = sum_pq x[n,c,i+p-padding,j+q-padding] w[c,p,q]"""
    return sum(s * w[:, p, q][:, None, None] for p, q, s in taps(x, w.shape[1], padding))


@jax.custom_vjp
def depthwise(x: Any, w: Any) -> Any:
    """:func:`correlate` that keeps the size of ``x``."""
    return correlate(x, w, w.shape[1] // 2)


def _forward(x: Any, w: Any) -> tuple[Any, Any]:
    return depthwise(x, w), (x, w)


def _backward(saved: Any, h: Any) -> tuple[Any, Any]:
    x, w = saved
    size = w.shape[1]
    dx = correlate(h, w[:, ::-1, ::-1], size - 1 - size // 2)
    dw = jnp.stack([jnp.sum(h * s, (0, 2, 3)) for _, _, s in taps(x, size, size // 2)], 1)
    return dx, dw.reshape(w.shape)


depthwise.defvjp(_forward, _backward)

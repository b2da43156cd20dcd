"""Pooling along one axis after the other by shifted slices; the adjoints read the windows that hold a position.

An axis of stride s is split into residue classes: position s u + r lies at tap r + s m of window u - m, so that each
class is a sum of a few slices, and the classes are interleaved by stack and reshape. Of equal maxima the first wins:
the first row with the maximum, and in it the first column, which is the first element of the window.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def _count(n: int, size: int, stride: int, padding: int) -> int:
    return (n + 2 * padding - size) // stride + 1


def _slices(x: Any, axis: int, size: int, stride: int, padding: int, fill: float) -> list[Any]:
    """For each tap, what it meets in every window along ``axis``."""
    count = _count(x.shape[axis], size, stride, padding)
    widths = [(padding, padding) if a == axis else (0, 0) for a in range(x.ndim)]
    x = jnp.pad(x, widths, constant_values=fill) if padding else x
    return [lax.slice_in_dim(x, p, p + (count - 1) * stride + 1, stride, axis) for p in range(size)]


def _interleaved(classes: list[Any], axis: int, start: int, length: int) -> Any:
    """``classes[r]`` at every position s u + r; then ``length`` of them from ``start``."""
    joined = jnp.stack(classes, axis + 1)
    shape = list(classes[0].shape)
    shape[axis] *= len(classes)
    return lax.slice_in_dim(joined.reshape(shape), start, start + length, axis=axis)


def _spread(parts: list[Any], axis: int, stride: int, padding: int, length: int) -> Any:
    """The sum at each position of ``parts[p]`` at the window whose tap p lies there."""
    size, count = len(parts), parts[0].shape[axis]
    rows = -(-(length + padding) // stride)
    classes = []
    for r in range(stride):
        terms = []
        for m, p in enumerate(range(r, size, stride)):
            # window u - m for u = 0, ..., rows - 1; zero where there is none
            widths = [(m, max(rows - count - m, 0)) if a == axis else (0, 0) for a in range(parts[p].ndim)]
            terms.append(lax.slice_in_dim(jnp.pad(parts[p], widths), 0, rows, axis=axis))
        classes.append(sum(terms[1:], terms[0]) if terms else None)
    zero = jnp.zeros_like(next(c for c in classes if c is not None))
    return _interleaved([zero if c is None else c for c in classes], axis, padding, length)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3, 4))
def max_axis(x: Any, axis: int, size: int, stride: int, padding: int) -> Any:
    """The maximum of windows along one axis."""
    slices = _slices(x, axis, size, stride, padding, -jnp.inf)
    best = slices[0]
    for s in slices[1:]:
        best = jnp.maximum(best, s)
    return best


def _max_forward(x: Any, axis: int, size: int, stride: int, padding: int) -> tuple[Any, Any]:
    slices = _slices(x, axis, size, stride, padding, -jnp.inf)
    best, winner = slices[0], jnp.zeros(slices[0].shape, "int8")
    for p, s in enumerate(slices[1:], 1):
        winner = jnp.where(s > best, jnp.int8(p), winner)
        best = jnp.maximum(best, s)
    return best, (winner, x.shape[axis])


def _max_backward(axis: int, size: int, stride: int, padding: int, saved: Any, h: Any) -> tuple[Any]:
    winner, length = saved
    parts = [jnp.where(winner == p, h, 0) for p in range(size)]
    return (_spread(parts, axis, stride, padding, length),)


max_axis.defvjp(_max_forward, _max_backward)


def max_pool(x: Any, size: int, stride: int, padding: int = 0) -> Any:
    """Square windows over the last two axes: columns, then rows."""
    return max_axis(max_axis(x, 3, size, stride, padding), 2, size, stride, padding)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3, 4))
def sum_axis(x: Any, axis: int, size: int, stride: int, padding: int) -> Any:
    """The sum of windows along one axis."""
    slices = _slices(x, axis, size, stride, padding, 0.0)
    return sum(slices[1:], slices[0])


def _sum_forward(x: Any, axis: int, size: int, stride: int, padding: int) -> tuple[Any, Any]:
    return sum_axis(x, axis, size, stride, padding), x.shape[axis]


def _sum_backward(axis: int, size: int, stride: int, padding: int, length: int, h: Any) -> tuple[Any]:
    return (_spread([h] * size, axis, stride, padding, length),)


sum_axis.defvjp(_sum_forward, _sum_backward)


def avg_pool(x: Any, size: int, stride: int, padding: int = 0) -> Any:
    """Means of square windows over the last two axes; elements outside count as zeros."""
    return sum_axis(sum_axis(x, 3, size, stride, padding), 2, size, stride, padding) / size**2

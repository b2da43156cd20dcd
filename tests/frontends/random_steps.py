"""Steps of random JAX functions: each makes one more array of those that there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any


def _axis(own: np.random.Generator, x: Array) -> int:
    return int(own.integers(max(x.ndim, 1)))


def _elementwise(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    functions = (
        jnp.sin,
        jnp.tanh,
        lambda x: x * x,
        lambda x: 0.5 * x + 1,
        lambda x: x / 3,
        jnp.abs,
        lambda x: -x,
        lambda x: jnp.sqrt(x * x + 0.5),
        lambda x: jnp.log1p(jnp.abs(x)),
        lambda x: (0.3 * x) ** 3,
        lambda x: jnp.exp(-x * x),
        jax.nn.relu,
        jax.nn.gelu,
        jax.nn.softplus,
        lambda x: jnp.clip(x, -0.7, 1.1),
        lambda x: lax.stop_gradient(x) * x,
        lambda x: jnp.where(x > 0.2, x * x, 0.0),
        lambda x: lax.atan2(x, 2 + x * x),
    )
    return functions[own.integers(len(functions))](x)


def _binary(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    others = [v for v in values if v.shape == x.shape]
    y = others[own.integers(len(others))]
    functions = (
        *(jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum, jnp.logaddexp),
        lambda a, b: jnp.where(a > b, a, 2 * b),
        lambda a, b: a / (1 + b * b),
        lambda a, b: jnp.hypot(a + 3, b),
    )
    return functions[own.integers(len(functions))](x, y)


def _slice(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    index = []
    for n in x.shape:
        start = int(own.integers(n))
        index.append(slice(start, int(own.integers(start, n)) + 1, int(own.integers(1, 3))))
    return x[tuple(index)]


def _roll(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    return jnp.roll(x, int(own.integers(-3, 4)), _axis(own, x)) if x.ndim else x


def _pad(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    if own.integers(2) and x.ndim:
        config = [(*map(int, own.integers(-1, 3, 2)), int(own.integers(2))) for _ in x.shape]
        whole = [
            (max(low, 0) if n + low + high < 0 else low, high, inner)
            for n, (low, high, inner) in zip(x.shape, config, strict=True)
        ]
        return lax.pad(x, jnp.asarray(0.5, x.dtype), whole)
    mode = ("constant", "edge", "wrap", "reflect")[own.integers(4)]
    return jnp.pad(x, 1, mode=mode) if x.ndim and (mode != "reflect" or min(x.shape) > 1) else x


def _concatenate(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    parts = [v for v in values if v.shape == x.shape]
    join = jnp.concatenate if x.ndim and own.integers(2) else jnp.stack
    return join([x, parts[own.integers(len(parts))]], _axis(own, x))


def _reshape(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    divisors = [d for d in range(1, x.size + 1) if x.size % d == 0]
    d = divisors[own.integers(len(divisors))]
    return x.reshape(((d, x.size // d), (x.size,), (d, 1, x.size // d))[own.integers(3)])


def _transpose(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    return (
        x.transpose(own.permutation(x.ndim))
        if own.integers(2)
        else x[tuple(slice(None, None, -1) for _ in x.shape)]
    )


def _reduce(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    if not x.ndim:
        return x
    functions = (jnp.sum, jnp.max, jnp.mean, jnp.min)
    return functions[own.integers(4)](x, axis=_axis(own, x), keepdims=bool(own.integers(2)))


def _cumulative(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    return lax.cumsum(x, _axis(own, x), reverse=bool(own.integers(2))) if x.ndim else x


def _window(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    size = tuple(int(own.integers(1, 1 + min(n, 3))) for n in x.shape)
    stride = tuple(int(own.integers(1, 3)) for _ in x.shape)
    init, op = ((0.0, lax.add), (-jnp.inf, lax.max), (jnp.inf, lax.min))[own.integers(3)]
    return (
        lax.reduce_window(x, np.asarray(init, x.dtype), op, size, stride, ("SAME", "VALID")[own.integers(2)])
        if x.ndim
        else x
    )


def _gather(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    if not x.ndim:
        return x
    axis = _axis(own, x)
    n = x.shape[axis]
    index = (np.arange(n) // 2, np.arange(n)[::-1].copy(), (np.arange(n) + 2) % n, own.integers(0, n, 4))[
        own.integers(4)
    ]
    return jnp.take(x, index, axis=axis)


def _update(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    if not x.ndim:
        return x
    n = x.shape[0]
    where = (slice(0, 1), slice(n // 2, None), slice(None, None, 2), 0)[own.integers(4)]
    kind = ("set", "add", "multiply")[own.integers(3)]
    return getattr(x.at[where], kind)(0.5 * x[where] if own.integers(2) else 2.0)


def _broadcast(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    return (
        jnp.repeat(x, 2, _axis(own, x))
        if x.ndim and own.integers(2)
        else jnp.broadcast_to(x[None], (2, *x.shape))
    )


def _product(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    return x @ x.T if x.ndim == 2 else x


def _rows(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    """What is along one axis: partial sums, norms, softmaxes, extrema with their positions."""
    if not x.ndim:
        return x
    axis = _axis(own, x)
    functions: Sequence[Callable[[Array], Array]] = (
        lambda x: lax.cummax(x, axis),
        lambda x: lax.cummin(x, axis, reverse=True),
        lambda x: lax.cumprod(0.5 * x + 1, axis),
        lambda x: lax.cumlogsumexp(x, axis),
        lambda x: jnp.diff(x, axis=axis),
        lambda x: jnp.sort(x, axis),
        lambda x: jax.nn.softmax(x, axis),
        lambda x: (x - x.mean(axis, keepdims=True)) * lax.rsqrt(x.var(axis, keepdims=True) + 0.1),
        lambda x: jax.nn.logsumexp(x, axis, keepdims=True),
        lambda x: jnp.prod(x, axis),
        lambda x: x * (jnp.argmax(x, axis, keepdims=True) > 0),
        lambda x: jnp.gradient(x, axis=axis) if x.shape[axis] > 2 else x,
        lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis), axis),
    )
    return functions[own.integers(len(functions))](x)


def _dynamic(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    """Slices, updates and reads at positions that are data."""
    if not x.ndim:
        return x
    axis = _axis(own, x)
    n = x.shape[axis]
    size = int(own.integers(1, n + 1))
    start = jnp.sum(values[0] > 0) % n if own.integers(2) else int(own.integers(-2, n + 1))
    rows = jnp.argsort(jnp.ravel(values[1])[:n]) % n
    part = lax.dynamic_slice_in_dim(x, start, size, axis)
    functions: Sequence[Callable[[], Array]] = (
        lambda: part,
        lambda: lax.dynamic_update_slice_in_dim(x, 0.5 * part, start, axis),
        lambda: jnp.take(x, rows, axis),
        lambda: jnp.zeros_like(x).at[start].add(x[0]),
        lambda: jax.ops.segment_sum(x, jnp.arange(x.shape[0]) // 2, 4),
        lambda: lax.dynamic_index_in_dim(x, start, axis),
    )
    return functions[own.integers(len(functions))]()


def _convolution(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    if x.ndim != 2:
        return x
    kernel = values[1][: int(own.integers(1, 4)), : int(own.integers(1, 3))]
    strides, dilation, holes = ([int(n) for n in own.integers(1, 3, 2)] for _ in range(3))
    padding = [(int(a), int(b)) for a, b in own.integers(-1, 3, (2, 2))]
    padding = [(a, b) if n > 2 else (abs(a), abs(b)) for (a, b), n in zip(padding, x.shape, strict=True)]
    if own.integers(2) and min(x.shape) >= 3:
        return jax.scipy.signal.convolve2d(x, kernel, ("full", "same", "valid")[own.integers(3)])
    groups = 2 if own.integers(2) else 1
    images = jnp.stack([x, 2 * x])[None]
    weights = jnp.stack([jnp.stack([kernel, -kernel][: 2 // groups])] * 2)
    return lax.conv_general_dilated(
        images, weights, strides, padding, dilation, holes, feature_group_count=groups
    )[0, 1]


def _products(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    y = next((v for v in reversed(values) if v.ndim == x.ndim and v.shape[:1] == x.shape[:1]), x)
    if x.ndim == 2:
        text = ("ij,ik->jk", "ij,ik->ikj", "ij,ik->k")[own.integers(3)]
        return jnp.einsum(text, x, y)
    return jnp.outer(x, y) if x.ndim == 1 else x


def _calls(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    """Loops, branches, calls and maps around a few operations."""
    if not x.ndim:
        return x

    def step(carry: Array, row: Array) -> tuple[Array, Array]:
        carry = 0.5 * carry + jnp.sin(jnp.roll(row, 1))
        return carry, carry * row

    functions: Sequence[Callable[[], Array]] = (
        lambda: lax.scan(step, jnp.ones_like(x[0]), x, reverse=bool(own.integers(2)))[1],
        lambda: lax.cond(values[0][0, 0] > 0, lambda x: jnp.roll(x, 1, 0), lambda x: x * x, x),
        lambda: jax.jit(lambda x: jnp.roll(jnp.tanh(x), 1, -1) * x)(x),
        lambda: jax.checkpoint(lambda x: jnp.cumsum(jnp.sin(x), 0))(x),
        lambda: jax.vmap(lambda r: jnp.roll(r, 2) * r if r.ndim else r * r)(x),
        lambda: lax.fori_loop(0, 3, lambda n, x: x + 0.1 * n * jnp.roll(x, 1, 0), x),
        lambda: lax.map(lambda r: jnp.max(r) * r, x),
        lambda: lax.associative_scan(lambda a, b: a * b + a, 0.3 * x),
    )
    return functions[own.integers(len(functions))]()


def _masked(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    """Masks of positions: triangles, one-hot rows, iotas."""
    if x.ndim < 2:
        return x
    n, m = x.shape[-2:]
    k = int(own.integers(-2, 3))
    functions: Sequence[Callable[[], Array]] = (
        lambda: jnp.tril(x, k),
        lambda: jnp.where(jnp.arange(m) % 2 == 0, x, 2.0),
        lambda: jax.nn.one_hot(np.arange(3) % n, n, dtype=x.dtype) @ x,
        lambda: x * jnp.arange(m),
        lambda: jnp.where(jnp.arange(n)[:, None] < jnp.arange(m), x, -x),
        lambda: jnp.diagonal(x, axis1=-2, axis2=-1),
        lambda: x[..., :: 1 + abs(k), ::-1],
        lambda: jnp.squeeze(x[..., :1, :], -2),
        lambda: jnp.tile(x, (1,) * (x.ndim - 1) + (2,)),
        lambda: jnp.split(x, [n // 2], axis=-2)[own.integers(2)],
    )
    return functions[own.integers(len(functions))]()


STEPS: tuple[Callable[..., Array], ...] = (
    *(_elementwise, _elementwise, _binary, _binary, _slice, _slice, _roll, _roll, _pad, _concatenate),
    *(_reshape, _transpose, _reduce, _cumulative, _window, _gather, _update, _broadcast, _product),
    *(_rows, _rows, _dynamic, _convolution, _products, _calls, _masked),
)

"""Random JAX functions: chains of the primitives that are raised, on a few arrays, by a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
MOST_ELEMENTS = 400


def random_function(rng: np.random.Generator, steps: int = 6) -> Callable[[Array, Array], Array]:
    """A function of two 6 x 5 arrays, the same each time for the same state of ``rng``."""
    seed = int(rng.integers(1 << 31))

    def f(x: Array, y: Array) -> Array:
        own = np.random.default_rng(seed)
        values = [x, y]
        for _ in range(steps):
            source = values[own.integers(len(values))]
            made = STEPS[own.integers(len(STEPS))](own, source, values)
            if 0 < made.size <= MOST_ELEMENTS and made.ndim <= 4:
                values.append(made)
        return sum(jnp.sum(jnp.tanh(v) * (n + 1)) for n, v in enumerate(values[2:] or values))

    return f


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
    )
    return functions[own.integers(len(functions))](x)


def _binary(own: np.random.Generator, x: Array, values: list[Array]) -> Array:
    others = [v for v in values if v.shape == x.shape]
    y = others[own.integers(len(others))]
    functions = (jnp.add, jnp.subtract, jnp.multiply, lambda a, b: jnp.where(a > b, a, 2 * b), jnp.maximum)
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
        return lax.pad(x, jnp.float32(0.5), config)
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
    return lax.reduce_window(x, init, op, size, stride, ("SAME", "VALID")[own.integers(2)]) if x.ndim else x


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


STEPS: tuple[Callable[..., Array], ...] = (
    *(
        _elementwise,
        _binary,
        _slice,
        _roll,
        _pad,
        _concatenate,
        _reshape,
        _transpose,
        _reduce,
        _cumulative,
        _window,
    ),
    *(_gather, _update, _broadcast, _product, _binary, _slice, _roll),
)

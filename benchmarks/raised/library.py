"""Functions of jax.scipy and jax.numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from raised.registry import example


@example("library", (64, 4096), (9,))
def correlate(x, k):
    return jax.vmap(lambda row: jnp.correlate(row, k, mode="valid"))(x)


@example("library", (512, 512))
def gradient(x):
    gx, gy = jnp.gradient(x)
    return gx**2 + gy**2


@example("library", (512, 512))
def second_difference(x):
    return jnp.diff(x, n=2, axis=0)


@example("library", (16, 64, 64))
def trapezoid(x):
    return jax.scipy.integrate.trapezoid(x, dx=0.1, axis=1)


@example("library", (64, 8192))
def detrend(x):
    return x - x.mean(1, keepdims=True)


@example("library", (64, 64), (64, 64))
def kron_sum(a, b):
    return jnp.kron(a[:16, :16], b[:16, :16])


@example("library", (256, 256))
def trace_of_shift(x):
    return jnp.trace(jnp.roll(x, 3, 0) @ x.T)


@example("library", (128, 128, 16))
def take_along_constants(x):
    order = jnp.arange(127, -1, -1)
    return jnp.take(x, order, axis=0) * jnp.take(x, jnp.arange(128) // 2, axis=1)


@example("library", (512, 512))
def triangle(x):
    return jnp.tril(x, -1) + jnp.triu(x, 1).T

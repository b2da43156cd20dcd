"""a step of lifting: odd positions less the mean of their neighbours, even ones kept, interleaved again"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "lifting step, interleaved"
SIZES = {"full": dict(b=64, n=4096), "quick": dict(b=4, n=64), "tiny": dict(b=1, n=8)}


def inputs(b, n):
    return (normal(b, n),)


def expression(x):
    b, n = x.shape

    def element(b, i):
        return te.select(i % 2 == 1, x[b, i] - 0.5 * (x[b, i - i % 2] + x[b, (i + 1) % n]), te.tanh(x[b, i]))

    return te.compute((b, n), element, "y")


def idiomatic(x):
    b, n = x.shape
    even, odd = x[:, 0::2], x[:, 1::2]
    d = odd - 0.5 * (even + jnp.roll(even, -1, axis=1))
    return jnp.stack([jnp.tanh(even), d], axis=2).reshape(b, n)

"""y[c,i,j] = s x[c,i,j] + (1 - s) tanh z[c,i//4,j//4], s = sigmoid z[c,i//4,j//4]: details under a gate of a quarter of their resolution"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "gates of a quarter of the resolution"
SIZES = {
    "full": dict(c=32, n=128),
    "quick": dict(c=16, n=64),
    "tiny": dict(c=2, n=8),
}

ABOVE = {
    "temporaries": (
        7.0,
        "functions of the gate are kept for the backward pass; the idiomatic form holds sums in their place",
    )
}
HOLDS_BACK = "the sums over blocks are read from slices of what flows in, by several loops"


def inputs(c, n):
    return normal(c, n, n), normal(c, n // 4, n // 4)


def expression(x, z):
    def element(c, i, j):
        gate = te.sigmoid(z[c, i // 4, j // 4])
        return gate * x[c, i, j] + (1 - gate) * te.tanh(z[c, i // 4, j // 4])

    return te.compute(x.shape, element, "y")


def idiomatic(x, z):
    large = lambda part: jnp.repeat(jnp.repeat(part, 4, axis=1), 4, axis=2)  # noqa: E731
    gate = jax.nn.sigmoid(z)
    return large(gate) * x + large((1 - gate) * jnp.tanh(z))


def by_hand(x, z):
    c, n, _ = x.shape
    blocks, gate = x.reshape(c, n // 4, 4, n // 4, 4), jax.nn.sigmoid(z)[:, :, None, :, None]
    return (gate * blocks + (1 - gate) * jnp.tanh(z)[:, :, None, :, None]).reshape(x.shape)

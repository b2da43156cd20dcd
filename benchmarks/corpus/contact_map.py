"""p[i,j] = sigmoid(s (c - |x_i - x_j|)) where |i - j| >= 3, else 0: soft contacts along a chain"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "contact map of a chain"
SIZES = {
    "full": dict(b=4, n=512),
    "quick": dict(b=2, n=24),
    "tiny": dict(b=1, n=5),
}
ABOVE = {
    "bytes": (
        2.5,
        "differences of positions in small arrays, which are one product; large ones are not held",
    ),
    "temporaries": (3.4, "the same"),
    "flops": (1.6, "the same"),
}


def inputs(b, n):
    return (normal(b, n, 3, scale=4.0),)


def expression(x):
    b, n, _ = x.shape
    c = te.reduce_axis((0, 3), "c")

    def element(b, i, j):
        distance = te.sqrt(te.sum((x[b, i, c] - x[b, j, c]) ** 2, axis=c) + 1e-6)
        return te.select(te.abs(i - j) >= 3, te.sigmoid(2.0 * (8.0 - distance)), 0.0)

    return te.compute((b, n, n), element, "p")


def idiomatic(x):
    n = x.shape[1]
    distance = jnp.sqrt(jnp.sum((x[:, :, None] - x[:, None]) ** 2, axis=-1) + 1e-6)
    apart = jnp.abs(jnp.arange(n)[:, None] - jnp.arange(n)) >= 3
    return jnp.where(apart, jax.nn.sigmoid(2.0 * (8.0 - distance)), 0.0)

"""s[b,w,i,j] = q[b, w s + i] . k[b, (w s + i + j - r) mod n]: each query with the keys around it, on a ring"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "scores around each position of a ring"
SIZES = {
    "full": dict(b=4, n=1024, d=64, r=16),
    "quick": dict(b=2, n=32, d=8, r=3),
    "tiny": dict(b=1, n=6, d=2, r=1),
}

ABOVE = {"temporaries": (2.0, "small windows are stacked, for one product")}


def inputs(b, n, d, r):
    return normal(b, n, d), normal(b, n, d), integers(r, below=1)


def expression(q, k, like):
    b, n, size = q.shape
    r = like.shape[0]
    d = te.reduce_axis((0, size), "d")
    return te.compute(
        (b, n, 2 * r + 1), lambda b, i, j: te.sum(q[b, i, d] * k[b, (i + j - r) % n, d], axis=d), "s"
    )


def idiomatic(q, k, like):
    r = like.shape[0]
    return jnp.stack([jnp.sum(q * jnp.roll(k, r - j, axis=1), axis=-1) for j in range(2 * r + 1)], axis=-1)

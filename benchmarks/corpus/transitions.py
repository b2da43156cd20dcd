"""d[b,j] = max over i of (a[b,i] + T[i,j]) + e[b,j]: the best way into each state, one step for many sequences"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "best transitions"
SIZES = {
    "full": dict(b=512, n=64),
    "quick": dict(b=32, n=16),
    "tiny": dict(b=3, n=4),
}


def inputs(b, n):
    return normal(b, n), normal(n, n), normal(b, n)


def expression(a, t, e):
    b, n = a.shape
    i = te.reduce_axis((0, n), "i")
    return te.compute((b, n), lambda b, j: te.max(a[b, i] + t[i, j], axis=i) + e[b, j], "d")


def idiomatic(a, t, e):
    return jnp.max(a[:, :, None] + t, axis=1) + e

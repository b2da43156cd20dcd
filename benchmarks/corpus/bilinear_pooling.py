"""y[b,c,d] = sum_ij x[b,c,i,j] x[b,d,i,j] / n, then its signed square root: second-order features"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "bilinear pooling"
SIZES = {
    "full": dict(b=16, c=64, n=28),
    "quick": dict(b=2, c=6, n=7),
    "tiny": dict(b=1, c=2, n=2),
}


def inputs(b, c, n):
    return (normal(b, c, n, n),)


def expression(x):
    b, c, n, m = x.shape
    i, j = te.reduce_axis((0, n), "i"), te.reduce_axis((0, m), "j")
    y = te.compute(
        (b, c, c), lambda b, c, d: te.sum(x[b, c, i, j] * x[b, d, i, j], axis=(i, j)) / (n * m), "y"
    )
    return te.compute(y.shape, lambda *at: te.sign(y[at]) * te.sqrt(te.abs(y[at]) + 1e-6), "z")


def idiomatic(x):
    y = jnp.einsum("bcij,bdij->bcd", x, x) / (x.shape[2] * x.shape[3])
    return jnp.sign(y) * jnp.sqrt(jnp.abs(y) + 1e-6)

"""y[b,o] = sum a[i,o1,r] c[r,j,o2] x[b, 16 i + j] with o = 4 o1 + o2: a layer in tensor-train form, one sum"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "tensor-train layer"
SIZES = {
    "full": dict(b=256, n=32, r=8),
    "quick": dict(b=16, n=8, r=3),
    "tiny": dict(b=2, n=3, r=2),
}
HOLDS_BACK = (
    "the same products as JAX makes; what is between them "
    "stands in another order than the next product reads, and is copied"
)


def inputs(b, n, r):
    return normal(n, n, r), normal(r, n, n), normal(b, n * n)


def expression(a, c, x):
    n, _, rank = a.shape
    i, j, r = te.reduce_axis((0, n), "i"), te.reduce_axis((0, n), "j"), te.reduce_axis((0, rank), "r")

    def element(b, o):
        return te.sum(a[i, o // n, r] * c[r, j, o % n] * x[b, n * i + j], axis=(i, j, r))

    return te.compute((x.shape[0], n * n), element, "y")


def idiomatic(a, c, x):
    n = a.shape[0]
    return jnp.einsum("ipr,rjq,bij->bpq", a, c, x.reshape(-1, n, n), optimize="optimal").reshape(-1, n * n)

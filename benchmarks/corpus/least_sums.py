"""c[i,j] = min over k of (a[i,k] + b[k,j]): lengths of shortest ways over one more point, a product of matrices of least sums"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "least sums"
SIZES = {
    "full": dict(n=200, m=240, p=220),
    "quick": dict(n=24, m=20, p=28),
    "tiny": dict(n=4, m=3, p=5),
}


def inputs(n, m, p):
    return uniform(n, m), uniform(m, p)


def expression(a, b):
    k = te.reduce_axis((0, a.shape[1]), "k")
    return te.compute((a.shape[0], b.shape[1]), lambda i, j: te.min(a[i, k] + b[k, j], axis=k), "c")


def idiomatic(a, b):
    return jnp.min(a[:, :, None] + b, axis=1)

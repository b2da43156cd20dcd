"""y[b] = sum_{i < j} <v_i, v_j> x[b,i] x[b,j]: pairs of features, as the definition has them"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "factorisation machine, all pairs"
SIZES = {
    "full": dict(b=512, n=128, d=16),
    "quick": dict(b=16, n=24, d=4),
    "tiny": dict(b=2, n=4, d=2),
}


def inputs(b, n, d):
    return normal(b, n), normal(n, d, scale=0.1)


def expression(x, v):
    n, d = v.shape
    i, j, k = te.reduce_axis((0, n), "i"), te.reduce_axis((0, n), "j"), te.reduce_axis((0, d), "k")
    gram = te.compute((n, n), lambda i, j: te.sum(v[i, k] * v[j, k], axis=k), "gram")
    return te.compute(
        (x.shape[0],),
        lambda b: te.sum(gram[i, j] * x[b, i] * x[b, j], axis=(i, j), where=i < j),
        "y",
    )


def idiomatic(x, v):
    gram = jnp.triu(v @ v.T, 1)
    return jnp.einsum("bi,ij,bj->b", x, gram, x)

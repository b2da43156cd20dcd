"""s[i,j] = sum_k min(h[i,k], g[j,k]): what histograms have in common"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "histogram intersection"
SIZES = {"full": dict(n=512, m=512, k=32), "quick": dict(n=48, m=40, k=16), "tiny": dict(n=4, m=5, k=3)}
ABOVE = {
    "while": (
        1,
        "a loop of vectors for each position that is reduced, where all pairs and features would be held",
    )
}


def inputs(n, m, k):
    return uniform(n, k), uniform(m, k)


def expression(h, g):
    k = te.reduce_axis((0, h.shape[1]), "k")
    shape = (h.shape[0], g.shape[0])
    return te.compute(shape, lambda i, j: te.sum(te.minimum(h[i, k], g[j, k]), axis=k), "s")


def idiomatic(h, g):
    return jnp.sum(jnp.minimum(h[:, None], g[None]), axis=-1)

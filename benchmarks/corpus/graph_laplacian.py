"""u[i,c] = sum_j w[i,j] (x[i,c] - x[j,c]): a weighted graph Laplacian"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "Laplacian of a weighted graph"
SIZES = {"full": dict(n=1024, c=32), "quick": dict(n=64, c=16), "tiny": dict(n=5, c=3)}
ABOVE = {
    "while": (
        1,
        "a loop of vectors for each position that is reduced, where all pairs and features would be held",
    )
}


def inputs(n, c):
    return uniform(n, n), normal(n, c)


def expression(w, x):
    j = te.reduce_axis((0, x.shape[0]), "j")
    return te.compute(x.shape, lambda i, c: te.sum(w[i, j] * (x[i, c] - x[j, c]), axis=j), "u")


def idiomatic(w, x):
    return jnp.sum(w[:, :, None] * (x[:, None] - x[None]), axis=1)


def by_hand(w, x):
    return w.sum(1)[:, None] * x - w @ x

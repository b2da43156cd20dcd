"""d[i,j] = sum_q (x[i,q] - y[j,q])^2: squared distances of 32 features"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "squared distances, 32 features"
SIZES = {"full": dict(n=768, m=512, c=32), "quick": dict(n=48, m=40, c=16), "tiny": dict(n=4, m=5, c=3)}
ABOVE = {
    "while": (
        1,
        "a loop of vectors for each position that is reduced, where all pairs and features would be held",
    )
}


def inputs(n, m, c):
    return normal(n, c), normal(m, c)


def expression(x, y):
    q = te.reduce_axis((0, x.shape[1]), "q")
    shape = (x.shape[0], y.shape[0])
    return te.compute(shape, lambda i, j: te.sum((x[i, q] - y[j, q]) ** 2, axis=q), "d")


def idiomatic(x, y):
    return jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)


def by_hand(x, y):
    return jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - 2 * x @ y.T

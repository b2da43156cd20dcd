"""y[i,m] = sum_d x[i,d] w[e[i], d, m]: a product with the matrix of each row's expert"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "one of four experts for each row"
SIZES = {
    "full": dict(i=1024, e=4, d=128, m=128),
    "quick": dict(i=256, e=3, d=16, m=24),
    "tiny": dict(i=4, e=2, d=2, m=2),
}

ABOVE = {
    "flops": (
        3.5,
        "each row is multiplied by the matrix of every expert; the one of each row, gathered, is 64 times the bytes",
    ),
}


def inputs(i, e, d, m):
    return normal(i, d), normal(e, d, m), integers(i, below=e)


def expression(x, w, e):
    n, (_, nd, nm) = x.shape[0], w.shape
    d = te.reduce_axis((0, nd), "d")
    return te.compute((n, nm), lambda i, m: te.sum(x[i, d] * w[e[i], d, m], axis=d), "y")


def idiomatic(x, w, e):
    return jnp.einsum("id,idm->im", x, w[e])


def by_hand(x, w, e):
    k = w.shape[0]
    each = [jnp.where((e == n)[:, None], x, 0.0) @ w[n] for n in range(k)]
    return sum(each)

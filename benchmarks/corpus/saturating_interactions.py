"""g[i,c] = sum_j a[i,j] x[j,c] / (1 + x[i,c] + x[j,c]): interactions of species that saturate"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "interactions that saturate"
SIZES = {"full": dict(n=384, c=16), "quick": dict(n=48, c=8), "tiny": dict(n=4, c=3)}


def inputs(n, c):
    return uniform(n, n), uniform(n, c)


def expression(a, x):
    j = te.reduce_axis((0, x.shape[0]), "j")
    element = lambda i, c: te.sum(a[i, j] * x[j, c] / (1 + x[i, c] + x[j, c]), axis=j)  # noqa: E731
    return te.compute(x.shape, element, "g")


def idiomatic(a, x):
    return jnp.sum(a[:, :, None] * x[None] / (1 + x[:, None] + x[None]), axis=1)

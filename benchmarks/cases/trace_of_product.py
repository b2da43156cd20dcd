"""y = sum_ij a[i,j] b[j,i]"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "trace of a product"
SIZES = {"full": dict(n=1024), "quick": dict(n=256), "tiny": dict(n=4)}
SPELLINGS = {"idiomatic": "jnp.einsum, which forms no product of matrices"}
TOLERANCE = 1e-3  # one number, a sum of a million terms of both signs


def inputs(n):
    return normal(n, n), normal(n, n)


def expression(a, b):
    i, j = te.reduce_axis((0, a.shape[0]), "i"), te.reduce_axis((0, a.shape[1]), "j")
    return te.compute((), lambda: te.sum(a[i, j] * b[j, i], axis=[i, j]), "y")


def idiomatic(a, b):
    return jnp.einsum("ij,ji->", a, b)


def indexed(a, b):
    i, j = jnp.arange(len(a))[:, None], jnp.arange(len(b))
    return jnp.sum(a * b[j, i])


def torch(torch, a, b):
    return torch.einsum("ij,ji->", a, b)

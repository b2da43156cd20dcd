"""y = sum_ij a[i,j] b[j,i]"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "trace of a product"
SIZES = {"full": dict(n=1024), "quick": dict(n=256), "tiny": dict(n=4)}
TOLERANCE = 1e-3  # one number, a sum of a million terms of both signs


def inputs(n):
    return normal(n, n), normal(n, n)


def expression(a, b):
    i, j = te.reduce_axis((0, a.shape[0]), "i"), te.reduce_axis((0, a.shape[1]), "j")
    return te.compute((), lambda: te.sum(a[i, j] * b[j, i], axis=[i, j]), "y")


def idiomatic(a, b):
    return jnp.trace(a @ b)


def by_hand(a, b):
    return jnp.sum(a * b.T)


def torch(torch, a, b):
    return torch.trace(a @ b)

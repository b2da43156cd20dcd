"""y[n,p,a] = sum_b m[n,a,b] x[n,p,b] + t[n,a]: points of each body moved by its pose"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "points of many bodies moved by their poses"
SIZES = {"full": dict(n=2000, p=64), "quick": dict(n=16, p=8), "tiny": dict(n=2, p=2)}


def inputs(n, p):
    return normal(n, 3, 3), normal(n, p, 3), normal(n, 3)


def expression(m, x, t):
    b = te.reduce_axis((0, 3), "b")
    return te.compute(x.shape, lambda n, p, a: te.sum(m[n, a, b] * x[n, p, b], axis=b) + t[n, a], "y")


def idiomatic(m, x, t):
    return jnp.einsum("nab,npb->npa", m, x) + t[:, None, :]

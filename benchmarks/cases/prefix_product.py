"""y[b,i] = prod_{j <= i} x[b,j]"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "prefix product"
SIZES = {"full": dict(b=64, n=2048), "quick": dict(b=16, n=512), "tiny": dict(b=2, n=5)}


def inputs(b, n):
    return (uniform(b, n, low=0.95, high=1.05),)


def expression(x):
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute(x.shape, lambda b, i: te.prod(x[b, j], axis=j, where=j <= i), "y")


def idiomatic(x):
    return jnp.cumprod(x, 1)


def torch(torch, x):
    return torch.cumprod(x, 1)

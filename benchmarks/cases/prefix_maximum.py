"""y[b,i] = max_{j <= i} x[b,j]"""

from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "prefix maximum"
SIZES = {"full": dict(b=64, n=2048), "quick": dict(b=16, n=512), "tiny": dict(b=2, n=5)}


def inputs(b, n):
    return (normal(b, n),)


def expression(x):
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute(x.shape, lambda b, i: te.max(x[b, j], axis=j, where=j <= i), "y")


def idiomatic(x):
    return lax.cummax(x, 1)


def torch(torch, x):
    return torch.cummax(x, 1).values

"""y[n,c] = max_ij x[n,c,i,j]"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "global max-pool"
SIZES = {"full": dict(n=16, c=128, h=28), "quick": dict(n=4, c=64, h=14), "tiny": dict(n=2, c=2, h=3)}


def inputs(n, c, h):
    return (normal(n, c, h, h),)


def expression(x):
    return te.ops.global_max_pool2d(x)


def idiomatic(x):
    return jnp.max(x, (2, 3), keepdims=True)


def torch(torch, x):
    return torch.amax(x, (2, 3), keepdim=True)

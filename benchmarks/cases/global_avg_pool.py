"""y[n,c] = sum_ij x[n,c,i,j] / (H W)"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "global average pool"
SIZES = {"full": dict(n=16, c=128, h=28), "quick": dict(n=4, c=64, h=14), "tiny": dict(n=2, c=2, h=3)}


def inputs(n, c, h):
    return (normal(n, c, h, h),)


def expression(x):
    return te.ops.global_avg_pool2d(x)


def idiomatic(x):
    return jnp.mean(x, (2, 3), keepdims=True)


def torch(torch, x):
    return torch.mean(x, (2, 3), keepdim=True)

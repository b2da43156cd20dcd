"""y[b,h,t,d] = x[b,t,D h + d], the heads of attention"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "reshape and transpose: heads"
SIZES = {"full": dict(b=8, t=512, d=512), "quick": dict(b=2, t=128, d=256), "tiny": dict(b=1, t=3, d=16)}
HEADS = 8


def inputs(b, t, d):
    return (normal(b, t, d),)


def expression(x):
    b, t, d = x.shape
    size = d // HEADS
    return te.compute((b, HEADS, t, size), lambda b, h, t, d: x[b, t, size * h + d], "y")


def idiomatic(x):
    b, t, d = x.shape
    return x.reshape(b, t, HEADS, d // HEADS).transpose(0, 2, 1, 3)


def indexed(x):
    t, size = jnp.arange(x.shape[1])[:, None], x.shape[2] // HEADS
    return x[:, t, size * jnp.arange(HEADS)[:, None, None] + jnp.arange(size)]


def torch(torch, x):
    b, t, d = x.shape
    return x.reshape(b, t, HEADS, d // HEADS).transpose(1, 2).contiguous()

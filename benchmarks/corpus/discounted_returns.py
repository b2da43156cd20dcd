"""g[b,t] = sum_{s >= t} a^(s - t) r[b,s]: discounted returns, one sum"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "discounted returns"
SIZES = {
    "full": dict(b=64, n=512),
    "quick": dict(b=4, n=24),
    "tiny": dict(b=1, n=5),
}
A = 0.97
ABOVE = {
    "while": (
        1.0,
        "a loop over positions, which is faster than products with small triangles or passes of a cumulative sum",
    )
}


def inputs(b, n):
    return (normal(b, n),)


def expression(r):
    s = te.reduce_axis((0, r.shape[1]), "s")
    return te.compute(r.shape, lambda b, t: te.sum(A ** (s - t) * r[b, s], axis=s, where=s >= t), "g")


def idiomatic(r):
    t = jnp.arange(r.shape[1])
    weight = jnp.where(t >= t[:, None], A ** (t - t[:, None]).astype(r.dtype), 0.0)
    return r @ weight.T

"""y[b,i] = sum_{j <= i} x[b,j]"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "prefix sum"
HOLDS_BACK = "blocks of four; by hand is a product with a triangle, in which an infinity or NaN spoils the sums before it"
SPELLINGS = {"indexed": "x @ (j[:, None] <= j)", "by hand": "sums in blocks of 32 by a triangular product"}
SIZES = {"full": dict(b=64, n=2048), "quick": dict(b=16, n=512), "tiny": dict(b=2, n=5)}


def inputs(b, n):
    return (normal(b, n),)


def expression(x):
    j = te.reduce_axis((0, x.shape[1]), "j")
    return te.compute(x.shape, lambda b, i: te.sum(x[b, j], axis=j, where=j <= i), "y")


def idiomatic(x):
    return jnp.cumsum(x, 1)


def indexed(x):
    j = jnp.arange(x.shape[1])
    return x @ (j[:, None] <= j)


def by_hand(x):
    """Sums within blocks of 32 by a triangular product, then those of the blocks before."""
    b, n = x.shape
    if n % 32:
        return jnp.cumsum(x, 1)
    within = x.reshape(b, n // 32, 32) @ jnp.triu(jnp.ones((32, 32), x.dtype))
    totals = within[..., -1]
    before = totals @ jnp.triu(jnp.ones((n // 32, n // 32), x.dtype), 1)
    return (within + before[..., None]).reshape(b, n)


def torch(torch, x):
    return torch.cumsum(x, 1)

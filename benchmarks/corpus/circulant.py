"""y[b,i] = sum_j c[(i - j) % n] x[b,j]: the product with a circulant matrix"""

import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.inputs import normal

TITLE = "circulant product"
SIZES = {"full": dict(b=64, n=1024), "quick": dict(b=8, n=96), "tiny": dict(b=2, n=7)}


def inputs(b, n):
    return normal(n), normal(b, n)


def expression(c, x):
    n = c.shape[0]
    j = te.reduce_axis((0, n), "j")
    return te.compute(x.shape, lambda b, i: te.sum(c[(i - j) % n] * x[b, j], axis=j), "y")


def idiomatic(c, x):
    n = c.shape[0]
    at = (np.arange(n)[:, None] - np.arange(n)) % n
    return jnp.einsum("ij,bj->bi", c[at], x)


def by_hand(c, x):
    return jnp.fft.irfft(jnp.fft.rfft(c) * jnp.fft.rfft(x), c.shape[0])

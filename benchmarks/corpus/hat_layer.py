"""y[b,o] = sum_{i,k} hat(x[b,i] - k) c[i,o,k]: a layer of piecewise linear functions"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "layer of piecewise linear functions"
SIZES = {
    "full": dict(b=256, i=64, o=64, k=16),
    "quick": dict(b=16, i=8, o=8, k=6),
    "tiny": dict(b=2, i=2, o=2, k=3),
}


def inputs(b, i, o, k):
    return uniform(b, i, low=0.0, high=k - 1.0), normal(i, o, k)


def expression(x, c):
    nb, (ni, no, nk) = x.shape[0], c.shape
    i, k = te.reduce_axis((0, ni), "i"), te.reduce_axis((0, nk), "k")
    return te.compute(
        (nb, no), lambda b, o: te.sum(te.relu(1 - te.abs(x[b, i] - k)) * c[i, o, k], axis=(i, k)), "y"
    )


def idiomatic(x, c):
    h = jax.nn.relu(1 - jnp.abs(x[..., None] - jnp.arange(c.shape[2])))
    return jnp.einsum("bik,iok->bo", h, c)

"""y[b,c,i,j] = mean of x[b,c,y,x] over i h // n <= y < ceil((i + 1) h / n), and so for x: adaptive average pool"""

import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.inputs import normal

TITLE = "adaptive average pool"
SIZES = {
    "full": dict(b=8, c=64, h=56, n=9),
    "quick": dict(b=2, c=4, h=28, n=9),
    "tiny": dict(b=1, c=2, h=7, n=3),
}
WITH_RESPECT_TO = (0,)


def inputs(b, c, h, n):
    return normal(b, c, h, h), normal(n, n)


def expression(x, like):
    b, c, h, w = x.shape
    n = like.shape[0]
    y, z = te.reduce_axis((0, h), "y"), te.reduce_axis((0, w), "z")

    def element(b, c, i, j):
        rows = te.logical_and(y >= i * h // n, y < ((i + 1) * h + n - 1) // n)
        columns = te.logical_and(z >= j * w // n, z < ((j + 1) * w + n - 1) // n)
        height = ((i + 1) * h + n - 1) // n - i * h // n
        width = ((j + 1) * w + n - 1) // n - j * w // n
        total = te.sum(x[b, c, y, z], axis=[y, z], where=te.logical_and(rows, columns))
        return total / te.cast(height * width, "float32")

    return te.compute((b, c, n, n), element, "y")


def idiomatic(x, like):
    h, n = x.shape[2], like.shape[0]
    at = np.arange(n)
    low, high = at * h // n, -(-(at + 1) * h // n)
    inside = (np.arange(h) >= low[:, None]) & (np.arange(h) < high[:, None])
    weights = jnp.asarray((inside / (high - low)[:, None]).astype("float32"))
    return jnp.einsum("bcyx,iy,jx->bcij", x, weights, weights)

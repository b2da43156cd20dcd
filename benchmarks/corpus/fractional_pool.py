"""y[b,i,j,c] = max of x over i*n//h <= y < (i+1)*n//h and the same of the columns: pools of two or three"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "fractional max-pool"
SIZES = {
    "full": dict(b=8, n=60, h=25, c=32),
    "quick": dict(b=2, n=14, h=6, c=4),
    "tiny": dict(b=1, n=5, h=3, c=2),
}
ABOVE = {
    "gather": (3.0, "the maxima of pools are found by their number"),
}


def inputs(b, n, h, c):
    return normal(b, n, n, c), integers(h, below=1)


def expression(x, like):
    b, n, m, c = x.shape
    h = like.shape[0]
    y, z = te.reduce_axis((0, n), "y"), te.reduce_axis((0, m), "z")

    def element(b, i, j, c):
        rows = (i * n // h <= y) & (y < (i + 1) * n // h)
        columns = (j * m // h <= z) & (z < (j + 1) * m // h)
        return te.max(x[b, y, z, c], axis=(y, z), where=rows & columns)

    return te.compute((b, h, h, c), element, "pool")


def idiomatic(x, like):
    n, h = x.shape[1], like.shape[0]
    ends = [(i * n // h, (i + 1) * n // h) for i in range(h)]
    rows = jnp.stack([jnp.max(x[:, lo:hi], axis=1) for lo, hi in ends], axis=1)
    return jnp.stack([jnp.max(rows[:, :, lo:hi], axis=2) for lo, hi in ends], axis=2)

"""y[i,c] = sum_k A[i, k] x[i + k - h, c] where 0 <= i + k - h < n: a banded matrix, stored by diagonals, times columns"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "banded product, stored by diagonals"
SIZES = {
    "full": dict(n=8192, k=9, c=64),
    "quick": dict(n=256, k=9, c=8),
    "tiny": dict(n=11, k=3, c=2),
}


def inputs(n, k, c):
    return normal(n, k), normal(n, c)


def expression(a, x):
    n, width = a.shape
    k, half = te.reduce_axis((0, width), "k"), width // 2

    def element(i, c):
        inside = (i + k >= half) & (i + k - half < n)
        return te.sum(a[i, k] * x[i + k - half, c], axis=k, where=inside)

    return te.compute(x.shape, element, "y")


def idiomatic(a, x):
    n, width = a.shape
    padded = jnp.pad(x, ((width // 2, width // 2), (0, 0)))
    return sum(a[:, k, None] * padded[k : k + n] for k in range(width))

"""y[b,c,i,j] = sum_pq x[b, (c k + p) k + q, (i - p) m + (j - q)] where 0 <= i - p < n and 0 <= j - q < m: columns added to an image"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "fold 3x3"
SIZES = {
    "full": dict(b=8, c=32, n=32),
    "quick": dict(b=2, c=4, n=12),
    "tiny": dict(b=1, c=2, n=3),
}
K = 3


def inputs(b, c, n):
    return (normal(b, c * K * K, n * n),)


def expression(x):
    b, f, s = x.shape
    n = int(s**0.5)
    p, q = te.reduce_axis((0, K), "p"), te.reduce_axis((0, K), "q")

    def element(b, c, i, j):
        rows = te.logical_and(i - p >= 0, i - p < n)
        columns = te.logical_and(j - q >= 0, j - q < n)
        read = x[b, (c * K + p) * K + q, (i - p) * n + (j - q)]
        return te.sum(read, axis=[p, q], where=te.logical_and(rows, columns))

    return te.compute((b, f // (K * K), n + K - 1, n + K - 1), element, "y")


def idiomatic(x):
    b, f, s = x.shape
    n = int(s**0.5)
    images = x.reshape(b, f // (K * K), K, K, n, n)
    return sum(
        jnp.pad(images[:, :, p, q], ((0, 0), (0, 0), (p, K - 1 - p), (q, K - 1 - q)))
        for p in range(K)
        for q in range(K)
    )

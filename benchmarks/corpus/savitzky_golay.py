"""y[b,i] = sum_k w[k] x[b, min(max(i + k - h, 0), n - 1)]: smoothing by a polynomial, its ends repeated"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "Savitzky-Golay filter"
SIZES = {
    "full": dict(b=64, n=16384, k=11),
    "quick": dict(b=4, n=256, k=11),
    "tiny": dict(b=1, n=7, k=3),
}


def inputs(b, n, k):
    return normal(b, n), normal(k)


def expression(x, w):
    n, width = x.shape[1], w.shape[0]
    k = te.reduce_axis((0, width), "k")

    def element(b, i):
        return te.sum(w[k] * x[b, te.minimum(te.maximum(i + k - width // 2, 0), n - 1)], axis=k)

    return te.compute(x.shape, element, "y")


def idiomatic(x, w):
    half = w.shape[0] // 2
    padded = jnp.pad(x, ((0, 0), (half, half)), mode="edge")
    return sum(w[k] * padded[:, k : k + x.shape[1]] for k in range(w.shape[0]))

"""y[b,i,j] = sum_km lap(x)[b,i+k,j+m] g[k] g[m]: blurred by a window of nine, then the five-point Laplacian, one sum each"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "Laplacian of Gaussian"
SIZES = {
    "full": dict(b=8, n=256),
    "quick": dict(b=2, n=32),
    "tiny": dict(b=1, n=12),
}
ABOVE = {
    "bytes": (5.8, "taps are slices that XLA counts each; convolutions by hand take forty times as long"),
}


def inputs(b, n):
    return normal(b, n, n), uniform(9)


def expression(x, g):
    b, n, m = x.shape
    k, q = te.reduce_axis((0, 9), "k"), te.reduce_axis((0, 9), "q")
    blurred = te.compute(
        (b, n - 8, m - 8), lambda b, i, j: te.sum(g[k] * g[q] * x[b, i + k, j + q], axis=(k, q)), "blurred"
    )

    def laplacian(b, i, j):
        around = (
            blurred[b, i, j + 1] + blurred[b, i + 2, j + 1] + blurred[b, i + 1, j] + blurred[b, i + 1, j + 2]
        )
        return around - 4 * blurred[b, i + 1, j + 1]

    return te.compute((b, n - 10, m - 10), laplacian, "y")


def idiomatic(x, g):
    kernel = jnp.outer(g, g)
    laplacian = jnp.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
    y = x[:, None]
    for own in (kernel, laplacian):
        y = lax.conv_general_dilated(y, own[None, None], (1, 1), "VALID")
    return y[:, 0]

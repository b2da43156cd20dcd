"""y = (x - mean) / sqrt(var + e) with mean and variance over windows of 9x9, zeros outside"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "local contrast"
SIZES = {
    "full": dict(b=8, n=192),
    "quick": dict(b=2, n=24),
    "tiny": dict(b=1, n=6),
}
ABOVE = {
    "bytes": (3.8, "taps are slices that XLA counts each; windows by reduce_window take ten times as long"),
}


def inputs(b, n):
    return (normal(b, n, n),)


def expression(x):
    b, n, m = x.shape
    k, q = te.reduce_axis((-4, 5), "k"), te.reduce_axis((-4, 5), "q")

    def windowed(value, name):
        def element(b, i, j):
            inside = (i + k >= 0) & (i + k < n) & (j + q >= 0) & (j + q < m)
            return te.sum(value(x[b, i + k, j + q]), axis=(k, q), where=inside) / 81

        return te.compute((b, n, m), element, name)

    mean, square = windowed(lambda v: v, "mean"), windowed(lambda v: v * v, "square")

    def element(b, i, j):
        variance = square[b, i, j] - mean[b, i, j] ** 2
        return (x[b, i, j] - mean[b, i, j]) / te.sqrt(te.maximum(variance, 0.0) + 0.01)

    return te.compute((b, n, m), element, "y")


def idiomatic(x):
    def windowed(v):
        return lax.reduce_window(v, 0.0, lax.add, (1, 9, 9), (1, 1, 1), "SAME") / 81

    mean = windowed(x)
    variance = windowed(x * x) - mean**2
    return (x - mean) / jnp.sqrt(jnp.maximum(variance, 0.0) + 0.01)

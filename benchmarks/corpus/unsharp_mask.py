"""y = x + a (x - blur(x)), blur by a window of seven taps on both axes, edges reflected"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "unsharp mask, reflected edges"
SIZES = {
    "full": dict(b=8, n=256),
    "quick": dict(b=2, n=24),
    "tiny": dict(b=1, n=8),
}
ABOVE = {
    "bytes": (2.3, "taps are slices that XLA counts each; the convolution takes ten times as long"),
}


def inputs(b, n):
    return normal(b, n, n), uniform(7)


def expression(x, g):
    b, n, m = x.shape
    k, q = te.reduce_axis((0, 7), "k"), te.reduce_axis((0, 7), "q")

    def inside(i, n):
        return (n - 1) - te.abs((n - 1) - te.abs(i))

    def element(b, i, j):
        blur = te.sum(g[k] * g[q] * x[b, inside(i + k - 3, n), inside(j + q - 3, m)], axis=(k, q))
        return x[b, i, j] + 0.5 * (x[b, i, j] - blur)

    return te.compute((b, n, m), element, "y")


def idiomatic(x, g):
    padded = jnp.pad(x, ((0, 0), (3, 3), (3, 3)), mode="reflect")[:, None]
    blur = lax.conv_general_dilated(padded, jnp.outer(g, g)[None, None], (1, 1), "VALID")[:, 0]
    return x + 0.5 * (x - blur)

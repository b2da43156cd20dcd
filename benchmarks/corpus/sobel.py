"""y[b,i,j] = sqrt(gx^2 + gy^2 + e), g = sum_pq s[p] d[q] x[b, i + p, j + q]: edges by Sobel's filters, as outer products"""

import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxte as te
from harness.inputs import given, normal

TITLE = "Sobel edges"
SIZES = {
    "full": dict(b=8, n=512),
    "quick": dict(b=2, n=40),
    "tiny": dict(b=1, n=4),
}
ABOVE = {
    "bytes": (2.3, "two passes for each of two filters"),
}


def inputs(b, n):
    return normal(b, n, n), given(np.array([1.0, 2.0, 1.0])), given(np.array([1.0, 0.0, -1.0]))


def expression(x, s, d):
    b, n, m = x.shape
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    shape = (b, n - 2, m - 2)
    gx = te.compute(shape, lambda b, i, j: te.sum(s[p] * d[q] * x[b, i + p, j + q], axis=(p, q)), "gx")
    gy = te.compute(shape, lambda b, i, j: te.sum(d[p] * s[q] * x[b, i + p, j + q], axis=(p, q)), "gy")
    return te.compute(shape, lambda *at: te.sqrt(gx[at] * gx[at] + gy[at] * gy[at] + 1e-3), "y")


def idiomatic(x, s, d):
    def filtered(kernel):
        return lax.conv_general_dilated(x[:, None], kernel[None, None], (1, 1), "VALID")[:, 0]

    gx, gy = filtered(jnp.outer(s, d)), filtered(jnp.outer(d, s))
    return jnp.sqrt(gx * gx + gy * gy + 1e-3)

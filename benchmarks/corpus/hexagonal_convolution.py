"""y = convolution 3 x 3 without two of its corners: a hexagonal grid"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "convolution on a hexagonal grid"
SIZES = {
    "full": dict(b=8, n=64, c=32, o=32),
    "quick": dict(b=2, n=8, c=4, o=4),
    "tiny": dict(b=1, n=4, c=1, o=1),
}


def inputs(b, n, c, o):
    return normal(b, n, n, c), normal(3, 3, c, o)


def expression(x, w):
    b, n, m, nc = x.shape
    k, q, c = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "q"), te.reduce_axis((0, nc), "c")

    def element(b, i, j, o):
        y, z = i + k - 1, j + q - 1
        return te.sum(
            x[b, y, z, c] * w[k, q, c, o],
            axis=(k, q, c),
            where=(te.abs(k + q - 2) < 2) & (y >= 0) & (y < n) & (z >= 0) & (z < m),
        )

    return te.compute((b, n, m, w.shape[3]), element, "y")


def idiomatic(x, w):
    mask = jnp.array([[0.0, 1, 1], [1, 1, 1], [1, 1, 0]])
    return lax.conv_general_dilated(
        x, w * mask[:, :, None, None], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )

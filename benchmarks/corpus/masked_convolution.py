"""y = convolution 7 x 7 whose taps below and right of the centre are left out"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "convolution that sees what is above"
SIZES = {
    "full": dict(b=8, n=32, c=32, o=32),
    "quick": dict(b=2, n=10, c=4, o=4),
    "tiny": dict(b=1, n=4, c=1, o=1),
}


def inputs(b, n, c, o):
    return normal(b, n + 6, n + 6, c), normal(7, 7, c, o)


def expression(x, w):
    b, n, m, nc = x.shape
    k, q, c = te.reduce_axis((0, 7), "k"), te.reduce_axis((0, 7), "q"), te.reduce_axis((0, nc), "c")
    above = (k < 3) | ((k == 3) & (q < 3))
    return te.compute(
        (b, n - 6, m - 6, w.shape[3]),
        lambda b, i, j, o: te.sum(x[b, i + k, j + q, c] * w[k, q, c, o], axis=(k, q, c), where=above),
        "y",
    )


def idiomatic(x, w):
    k, q = jnp.arange(7)[:, None], jnp.arange(7)
    mask = ((k < 3) | ((k == 3) & (q < 3))).astype(x.dtype)
    return lax.conv_general_dilated(
        x, w * mask[:, :, None, None], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )

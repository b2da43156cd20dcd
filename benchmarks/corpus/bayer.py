"""rgb[b,i,j] = (x[b,2i,2j], (x[b,2i,2j+1] + x[b,2i+1,2j]) / 2, x[b,2i+1,2j+1]): a Bayer mosaic as colours, by choices of the channel"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "Bayer mosaic to colours"
SIZES = {
    "full": dict(b=8, n=256, m=384),
    "quick": dict(b=2, n=16, m=12),
    "tiny": dict(b=1, n=4, m=6),
}


def inputs(b, n, m):
    return (normal(b, n, m),)


def expression(x):
    b, n, m = x.shape

    def element(b, i, j, c):
        y, z = 2 * i, 2 * j
        green = (x[b, y, z + 1] + x[b, y + 1, z]) / 2
        return te.select(c == 0, x[b, y, z], te.select(c == 1, green, x[b, y + 1, z + 1]))

    return te.compute((b, n // 2, m // 2, 3), element, "rgb")


def idiomatic(x):
    green = (x[:, ::2, 1::2] + x[:, 1::2, ::2]) / 2
    return jnp.stack([x[:, ::2, ::2], green, x[:, 1::2, 1::2]], axis=-1)

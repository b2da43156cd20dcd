"""out[b,i,j,c] = sum_kl wy wx img[b, y0[b,i,j] + k, x0[b,i,j] + l, c] where inside: bilinear samples, corners by a reduction"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal, uniform

TITLE = "grid sample, corners by a reduction"
SIZES = {
    "full": dict(b=4, n=96, c=32),
    "quick": dict(b=2, n=24, c=8),
    "tiny": dict(b=1, n=4, c=2),
}

ABOVE = {"gather": (1.25, "corners are gathered again in the backward pass, which holds half of the bytes")}


def inputs(b, n, c):
    return (
        normal(b, n, n, c),
        integers(b, n, n, below=n - 1),
        integers(b, n, n, below=n - 1),
        uniform(b, n, n),
        uniform(b, n, n),
    )


def expression(img, y0, x0, fy, fx):
    _, height, width, channels = img.shape
    k, m = te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 2), "m")

    def element(b, i, j, c):
        y, x = y0[b, i, j] + k, x0[b, i, j] + m
        wy = te.select(k == 0, 1 - fy[b, i, j], fy[b, i, j])
        wx = te.select(m == 0, 1 - fx[b, i, j], fx[b, i, j])
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        return te.sum(img[b, y, x, c] * wy * wx, axis=(k, m), where=inside)

    return te.compute((*y0.shape, channels), element, "out")


def idiomatic(img, y0, x0, fy, fx):
    batch = jnp.arange(img.shape[0])[:, None, None]

    def corner(y, x, weight):
        inside = (y >= 0) & (y < img.shape[1]) & (x >= 0) & (x < img.shape[2])
        found = img[batch, y.clip(0, img.shape[1] - 1), x.clip(0, img.shape[2] - 1)]
        return jnp.where(inside, weight, 0.0)[..., None] * found

    return (
        corner(y0, x0, (1 - fy) * (1 - fx))
        + corner(y0, x0 + 1, (1 - fy) * fx)
        + corner(y0 + 1, x0, fy * (1 - fx))
        + corner(y0 + 1, x0 + 1, fy * fx)
    )

"""E = sum_bij sqrt((x[b,i+1,j] - x)^2 + (x[b,i,j+1] - x)^2 + e): the isotropic total variation of images"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "total variation"
SIZES = {
    "full": dict(b=8, n=512),
    "quick": dict(b=2, n=40),
    "tiny": dict(b=1, n=4),
}


def inputs(b, n):
    return (normal(b, n, n),)


def expression(x):
    b, n, m = x.shape
    size = te.compute(
        (b, n - 1, m - 1),
        lambda b, i, j: te.sqrt(
            (x[b, i + 1, j] - x[b, i, j]) ** 2 + (x[b, i, j + 1] - x[b, i, j]) ** 2 + 1e-3
        ),
        "size",
    )
    i, j = te.reduce_axis((0, n - 1), "i"), te.reduce_axis((0, m - 1), "j")
    return te.compute((b,), lambda b: te.sum(size[b, i, j], axis=(i, j)), "energy")


def idiomatic(x):
    down, right = x[:, 1:, :-1] - x[:, :-1, :-1], x[:, :-1, 1:] - x[:, :-1, :-1]
    return jnp.sum(jnp.sqrt(down**2 + right**2 + 1e-3), axis=(1, 2))

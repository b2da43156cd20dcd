"""d[b] = mean_i min_j |x_i - y_j|^2 + mean_j min_i |x_i - y_j|^2: the Chamfer distance of two clouds of points"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "Chamfer distance"
SIZES = {
    "full": dict(b=4, n=1024),
    "quick": dict(b=2, n=64),
    "tiny": dict(b=1, n=4),
}
ABOVE = {
    "flops": (
        1.6,
        "ties of a least distance are counted, and masks of its places multiplied with differences",
    )
}


def inputs(b, n):
    return normal(b, n, 3), normal(b, n, 3)


def expression(x, y):
    b, n, _ = x.shape
    i, j, c = te.reduce_axis((0, n), "i"), te.reduce_axis((0, n), "j"), te.reduce_axis((0, 3), "c")
    d = te.compute((b, n, n), lambda b, i, j: te.sum((x[b, i, c] - y[b, j, c]) ** 2, axis=c), "d")
    to_y = te.compute((b, n), lambda b, i: te.min(d[b, i, j], axis=j), "to_y")
    to_x = te.compute((b, n), lambda b, j: te.min(d[b, i, j], axis=i), "to_x")
    return te.compute((b,), lambda b: te.sum(to_y[b, i] + to_x[b, i], axis=i) / n, "distance")


def idiomatic(x, y):
    d = jnp.sum((x[:, :, None] - y[:, None]) ** 2, axis=-1)
    return jnp.mean(jnp.min(d, axis=2), axis=1) + jnp.mean(jnp.min(d, axis=1), axis=1)

"""E = 1/2 sum_ij lj(|d_ij|^2) where i != j, d = x_i - x_j - L round((x_i - x_j) / L): Lennard-Jones with minimum image"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "pair energies, minimum image"
SIZES = {
    "full": dict(n=2048),
    "quick": dict(n=128),
    "tiny": dict(n=6),
}
L = 10.0
TOLERANCE = 1e-3


def inputs(n):
    return (uniform(n, 3),)


def potential(r2):
    s = 1.0 / (r2 + 0.1)
    cube = s * s * s
    return 4.0 * (cube * cube - cube)


def expression(x):
    n = x.shape[0]
    c = te.reduce_axis((0, 3), "c")
    i, j = te.reduce_axis((0, n), "i"), te.reduce_axis((0, n), "j")

    def image(i, j, c):
        d = L * (x[i, c] - x[j, c])
        return d - L * te.round(d / L)

    r2 = te.compute((n, n), lambda i, j: te.sum(image(i, j, c) * image(i, j, c), axis=c), "r2")
    pairs = te.select(i == j, 0.0, potential(r2[i, j]))
    return te.compute((), lambda: 0.5 * te.sum(pairs, axis=(i, j)), "energy")


def idiomatic(x):
    d = L * (x[:, None] - x[None])
    d = d - L * jnp.round(d / L)
    r2 = jnp.sum(d * d, axis=-1)
    return 0.5 * jnp.sum(jnp.where(jnp.eye(x.shape[0], dtype=bool), 0.0, potential(r2)))

"""y[x,y,z] = sum_ijk w[x % s, i] w[y % s, j] w[z % s, k] c[x // s + i, y // s + j, z // s + k]: a tensor-product spline, one sum"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "tensor-product B-spline in 3-d"
SIZES = {
    "full": dict(n=35),
    "quick": dict(n=8),
    "tiny": dict(n=5),
}
S, TAPS = 4, 4


def inputs(n):
    return normal(n, n, n), normal(S, TAPS)


def expression(c, w):
    n = (c.shape[0] - TAPS + 1) * S
    i, j, k = (te.reduce_axis((0, TAPS), name) for name in "ijk")

    def element(x, y, z):
        return te.sum(
            w[x % S, i] * w[y % S, j] * w[z % S, k] * c[x // S + i, y // S + j, z // S + k], axis=(i, j, k)
        )

    return te.compute((n, n, n), element, "y")


def idiomatic(c, w):
    for _ in range(3):  # one axis after the other, the last one first
        cells = c.shape[2] - TAPS + 1
        taps = jnp.stack([c[:, :, k : k + cells] for k in range(TAPS)], axis=-1)
        c = jnp.einsum("xyzk,sk->zsxy", taps, w).reshape(cells * S, *c.shape[:2])
    return c

"""s[b,i,j,k,m] = sum over 4x4 of |x[b, 4 i + p, 4 j + q] - y[b, 4 i + p + k, 4 j + q + m]|: costs of motion vectors"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "block matching"
SIZES = {
    "full": dict(b=2, n=128, s=8),
    "quick": dict(b=1, n=16, s=3),
    "tiny": dict(b=1, n=4, s=2),
}


def inputs(b, n, s):
    return normal(b, n, n), normal(b, n + s - 1, n + s - 1), integers(s, below=1)


def expression(x, y, like):
    b, n, width = x.shape
    s = like.shape[0]
    p, q = te.reduce_axis((0, 4), "p"), te.reduce_axis((0, 4), "q")

    def element(b, i, j, k, m):
        row, column = 4 * i + p, 4 * j + q
        return te.sum(te.abs(x[b, row, column] - y[b, row + k, column + m]), axis=(p, q))

    return te.compute((b, n // 4, width // 4, s, s), element, "cost")


def idiomatic(x, y, like):
    b, n, width = x.shape
    s = like.shape[0]

    def cost(k, m):
        off = jnp.abs(x - y[:, k : k + n, m : m + width])
        return jnp.sum(off.reshape(b, n // 4, 4, width // 4, 4), axis=(2, 4))

    rows = [jnp.stack([cost(k, m) for m in range(s)], axis=-1) for k in range(s)]
    return jnp.stack(rows, axis=-2)

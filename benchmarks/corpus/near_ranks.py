"""l[b] = sum of log(1 + exp(s_i - s_j)) over 0 < j - i <= 16 with y_i < y_j: items that stand near each other, in their order"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "order of items that stand near each other"
SIZES = {"full": dict(b=8, n=1024), "quick": dict(b=2, n=64), "tiny": dict(b=1, n=20)}
NEAR = 16


def inputs(b, n):
    return normal(b, n), normal(b, n)


def expression(s, y):
    b, n = s.shape
    i, j = te.reduce_axis((0, n), "i"), te.reduce_axis((0, n), "j")

    def loss(b):
        near = (j > i) & (j <= i + NEAR) & (y[b, i] < y[b, j])
        return te.sum(te.softplus(s[b, i] - s[b, j]), axis=(i, j), where=near)

    return te.compute((b,), loss, "l")


def idiomatic(s, y):
    i = jnp.arange(s.shape[1])
    ahead = i - i[:, None]
    near = (ahead > 0) & (ahead <= NEAR) & (y[:, :, None] < y[:, None])
    return jnp.sum(jnp.where(near, jax.nn.softplus(s[:, :, None] - s[:, None]), 0.0), axis=(1, 2))


def by_hand(s, y):
    n = s.shape[1]
    return sum(
        jnp.sum(jnp.where(y[:, : n - d] < y[:, d:], jax.nn.softplus(s[:, : n - d] - s[:, d:]), 0.0), axis=1)
        for d in range(1, NEAR + 1)
    )

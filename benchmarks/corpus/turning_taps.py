"""y[b,i] = sum_k w[i % 4, (k + i) % 4] x[b, 4 (i // 4) + k]: taps that turn with the phase of a position"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "taps that turn with the position"
SIZES = {"full": dict(b=32, n=8192), "quick": dict(b=4, n=512), "tiny": dict(b=1, n=16)}


def inputs(b, n):
    return normal(b, n), normal(4, 4)


def expression(x, w):
    b, n = x.shape
    k = te.reduce_axis((0, 4), "k")
    return te.compute(
        (b, n), lambda b, i: te.sum(w[i % 4, (k + i) % 4] * x[b, 4 * (i // 4) + k], axis=k), "y"
    )


def idiomatic(x, w):
    turned = jnp.stack([jnp.roll(w[p], -p) for p in range(4)])
    return jnp.einsum("pk,bnk->bnp", turned, x.reshape(x.shape[0], -1, 4)).reshape(x.shape)

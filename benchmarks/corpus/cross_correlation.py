"""r[b,l] = sum_i x[b,i] y[b, i + l - m] where inside, for lags of up to m: correlation of pairs of signals"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "correlation of signals"
SIZES = {
    "full": dict(b=64, n=2048, m=32),
    "quick": dict(b=4, n=96, m=6),
    "tiny": dict(b=1, n=9, m=2),
}


def inputs(b, n, m):
    return normal(b, n), normal(b, n), integers(m, below=1)


def expression(x, y, like):
    b, n = x.shape
    m = like.shape[0]
    i = te.reduce_axis((0, n), "i")

    def element(b, lag):
        other = i + lag - m
        return te.sum(x[b, i] * y[b, other], axis=i, where=(other >= 0) & (other < n))

    return te.compute((b, 2 * m + 1), element, "r")


def idiomatic(x, y, like):
    n, m = x.shape[1], like.shape[0]
    padded = jnp.pad(y, ((0, 0), (m, m)))
    return jnp.stack([jnp.sum(x * padded[:, lag : lag + n], axis=1) for lag in range(2 * m + 1)], axis=1)

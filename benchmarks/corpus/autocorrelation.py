"""a[b,l] = r[b,l] / r[b,0] with r[b,l] = sum_i x[b,i] x[b, i + lag] where inside: normalised autocorrelation, a few lags"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "autocorrelation, 21 lags"
SIZES = {
    "full": dict(b=32, n=4001),
    "quick": dict(b=3, n=61),
    "tiny": dict(b=1, n=23),
}
LAGS = 21


def inputs(b, n):
    return (normal(b, n),)


def expression(x):
    b, n = x.shape
    i = te.reduce_axis((0, n), "i")
    r = te.compute((b, LAGS), lambda b, lag: te.sum(x[b, i] * x[b, i + lag], axis=i, where=i + lag < n), "r")
    return te.compute((b, LAGS), lambda b, lag: r[b, lag] / r[b, 0], "a")


def idiomatic(x):
    n = x.shape[1]
    lags = [jnp.sum(x[:, : n - lag] * x[:, lag:], axis=1) for lag in range(LAGS)]
    return jnp.stack(lags, axis=1) / jnp.sum(x * x, axis=1, keepdims=True)

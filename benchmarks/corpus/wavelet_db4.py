"""y[b,s,i] = sum_k f[s,k] x[b, (2 i + k) % n]: one level of a periodic wavelet transform with filters of four taps"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "wavelet transform, periodic, 4 taps"
SIZES = {"full": dict(b=64, n=16384), "quick": dict(b=4, n=256), "tiny": dict(b=2, n=10)}


def inputs(b, n):
    return normal(b, n), normal(2, 4)


def expression(x, f):
    n, k = x.shape[1], te.reduce_axis((0, f.shape[1]), "k")
    return te.compute(
        (x.shape[0], f.shape[0], n // 2),
        lambda b, s, i: te.sum(f[s, k] * x[b, (2 * i + k) % n], axis=k),
        "y",
    )


def idiomatic(x, f):
    n = x.shape[1]
    wrapped = jnp.concatenate([x, x[:, : f.shape[1] - 2]], axis=1)
    return sum(f[:, k][:, None] * wrapped[:, None, k : k + n - 1 : 2] for k in range(f.shape[1]))

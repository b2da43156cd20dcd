"""y[b,t] = sum_k w[k] x[b,t-k], k <= t: a causal filter of 400 taps"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "causal filter of 400 taps"
SIZES = {"full": dict(b=8, t=4096, k=400), "quick": dict(b=2, t=128, k=40), "tiny": dict(b=1, t=12, k=5)}


def inputs(b, t, k):
    return normal(b, t), normal(k)


def expression(x, w):
    k = te.reduce_axis((0, w.shape[0]), "k")
    return te.compute(x.shape, lambda b, t: te.sum(w[k] * x[b, t - k], axis=k, where=t >= k), "y")


def idiomatic(x, w):
    return jax.vmap(lambda row: jnp.convolve(row, w)[: row.shape[0]])(x)


def by_hand(x, w):
    n = x.shape[1] + w.shape[0]
    return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(w, n), n)[:, : x.shape[1]]

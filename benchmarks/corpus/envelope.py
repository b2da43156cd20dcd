"""y[b,t] = max over 101 positions around t of |x|, fewer at both ends: an envelope"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "envelope of a signal, 101 positions"
SIZES = {"full": dict(b=16, t=8192), "quick": dict(b=2, t=1024), "tiny": dict(b=1, t=20)}
ABOVE = {
    "bytes": (
        4.4,
        "windows of 1, 2, 4, ... positions are arrays, where each of 101 comparisons is made of elements in a cache; short ones are copied once more",
    )
}


def inputs(b, t):
    return (normal(b, t),)


def expression(x):
    b, t = x.shape
    k = te.reduce_axis((-50, 51), "k")
    return te.compute(
        (b, t),
        lambda b, i: te.max(te.abs(x[b, i + k]), axis=k, where=(i + k >= 0) & (i + k < t)),
        "y",
    )


def idiomatic(x):
    return lax.reduce_window(jnp.abs(x), -jnp.inf, lax.max, (1, 101), (1, 1), "SAME")


def by_hand(x):
    y, w = jnp.pad(jnp.abs(x), ((0, 0), (50, 50)), constant_values=-jnp.inf), 1
    while w < 101:
        s = min(w, 101 - w)
        y, w = jnp.maximum(y[:, :-s], y[:, s:]), w + s
    return y

"""f[b,t] = sum_f relu(log1p|s[b,t+1,f]| - log1p|s[b,t,f]|): rises of a spectrum, as onsets have them"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "spectral flux"
SIZES = {"full": dict(b=16, t=400, f=257), "quick": dict(b=2, t=32, f=129), "tiny": dict(b=2, t=4, f=3)}
ABOVE = {
    "flops": (
        1.8,
        "levels of neighbours are compared again in the backward pass, and its edges are computed by themselves",
    ),
    "bytes": (2.15, "the levels are an array, which both passes read at neighbours"),
}


def inputs(b, t, f):
    return (normal(b, t, f),)


def expression(s):
    b, t, n = s.shape
    f = te.reduce_axis((0, n), "f")

    def level(b, t):
        return te.log1p(te.abs(s[b, t, f]))

    return te.compute((b, t - 1), lambda b, t: te.sum(te.relu(level(b, t + 1) - level(b, t)), axis=f), "f")


def idiomatic(s):
    level = jnp.log1p(jnp.abs(s))
    return jnp.sum(jax.nn.relu(level[:, 1:] - level[:, :-1]), axis=2)

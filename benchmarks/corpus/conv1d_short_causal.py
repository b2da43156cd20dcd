"""y[b,t,c] = silu(sum_k w[k,c] x[b, t + k - 3, c] + bias[c]), with zeros before the start: the short convolution of a state-space model"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "short causal convolution"
SIZES = {
    "full": dict(b=4, n=2048, c=128),
    "quick": dict(b=2, n=32, c=8),
    "tiny": dict(b=1, n=5, c=2),
}


def inputs(b, n, c):
    return normal(b, n, c), normal(4, c), normal(c)


def expression(x, w, bias):
    k = te.reduce_axis((0, 4), "k")

    def element(b, t, c):
        before = te.select(t + k >= 3, x[b, t + k - 3, c], 0.0)
        return te.silu(te.sum(w[k, c] * before, axis=k) + bias[c])

    return te.compute(x.shape, element, "y")


def idiomatic(x, w, bias):
    n = x.shape[1]
    padded = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    return jax.nn.silu(sum(w[k] * padded[:, k : k + n] for k in range(4)) + bias)

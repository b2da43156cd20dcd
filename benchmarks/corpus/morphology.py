"""y = max over 5x5 of (x + s): grey dilation by a structuring element that is learned"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "grey dilation"
SIZES = {
    "full": dict(b=4, n=192),
    "quick": dict(b=1, n=16),
    "tiny": dict(b=1, n=6),
}


def inputs(b, n):
    return normal(b, n, n), normal(5, 5)


def expression(x, s):
    b, n, m = x.shape
    k, q = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "q")
    return te.compute(
        (b, n - 4, m - 4), lambda b, i, j: te.max(x[b, i + k, j + q] + s[k, q], axis=(k, q)), "y"
    )


def idiomatic(x, s):
    n, m = x.shape[1] - 4, x.shape[2] - 4
    taps = [x[:, k : k + n, q : q + m] + s[k, q] for k in range(5) for q in range(5)]
    return jnp.max(jnp.stack(taps), axis=0)

"""e[i] = sum over j of 1 / (1 + |x_i - x_j|^2) for 3 <= j - i <= 12: contacts along a chain"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "contacts along a chain"
SIZES = {"full": dict(n=8192), "quick": dict(n=128), "tiny": dict(n=16)}

ABOVE = {
    "temporaries": (4.5, "squares of distances are kept for the backward pass, padded at both ends"),
    "bytes": (2.5, "the gradient pads both ends of each pair, where that of slices pads one"),
    "flops": (
        2.5,
        "squares of differences are computed for both ends of each pair: the gradient adds up what flows in from either side",
    ),
}


def inputs(n):
    return (normal(n, 3),)


def expression(x):
    n = x.shape[0]
    j, c = te.reduce_axis((0, n), "j"), te.reduce_axis((0, 3), "c")

    def square(i):
        return te.sum((x[i, c] - x[j, c]) ** 2, axis=c)

    return te.compute(
        (n,), lambda i: te.sum(1 / (1 + square(i)), axis=j, where=(j - i >= 3) & (j - i <= 12)), "e"
    )


def idiomatic(x):
    n = x.shape[0]
    return sum(jnp.pad(1 / (1 + jnp.sum((x[: n - d] - x[d:]) ** 2, axis=1)), (0, d)) for d in range(3, 13))

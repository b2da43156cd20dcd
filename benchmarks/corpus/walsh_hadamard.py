"""ten butterflies: y[b,i] = x[b, i ^ 2^s] +- x[b,i], the Walsh-Hadamard transform"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "Walsh-Hadamard transform"
SIZES = {"full": dict(b=64, s=10), "quick": dict(b=4, s=5), "tiny": dict(b=2, s=2)}


def inputs(b, s):
    return normal(b, 2**s), integers(s, below=1)


def expression(x, like):
    for s in range(like.shape[0]):

        def step(b, i, x=x, s=s):
            return te.select((i >> s) & 1 == 0, x[b, i] + x[b, i ^ (1 << s)], x[b, i ^ (1 << s)] - x[b, i])

        x = te.compute(x.shape, step, f"x{s}")
    return x


def idiomatic(x, like):
    b, n = x.shape
    for s in range(like.shape[0]):
        v = x.reshape(b, n >> (s + 1), 2, 1 << s)
        x = jnp.stack([v[:, :, 0] + v[:, :, 1], v[:, :, 0] - v[:, :, 1]], axis=2).reshape(b, n)
    return x

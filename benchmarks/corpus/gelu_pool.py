"""y[b,c,i,j] = max_pq gelu(x)[b, c, i + p, j + q]: a 3x3 pool of an expensive function, in one program"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "3x3 pool after gelu"
SIZES = {
    "full": dict(b=8, c=32, n=64),
    "quick": dict(b=2, c=4, n=16),
    "tiny": dict(b=1, c=1, n=4),
}


def inputs(b, c, n):
    return (normal(b, c, n, n),)


def expression(x):
    b, c, n, _ = x.shape
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    active = te.compute(x.shape, lambda *at: te.gelu(x[at]), "active")
    element = lambda b, c, i, j: te.max(active[b, c, i + p, j + q], axis=(p, q), ties="first")  # noqa: E731
    return te.compute((b, c, n - 2, n - 2), element, "y")


def idiomatic(x):
    return lax.reduce_window(jax.nn.gelu(x), -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 1, 1), "VALID")

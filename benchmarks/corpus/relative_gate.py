"""g[i,j] = tanh(b[i - j + n - 1] + u[i] + v[j]): a gate for each pair of positions, with a learned table of distances"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "gate with a table of distances"
SIZES = {"full": dict(n=1024), "quick": dict(n=64), "tiny": dict(n=4)}
HOLDS_BACK = "the gradient of the table is a sum along diagonals, of rows one after the other: a loop of 1,024 steps beside one scatter"


def inputs(n):
    return normal(n), normal(n), normal(2 * n - 1)


def expression(u, v, b):
    n = u.shape[0]
    return te.compute((n, n), lambda i, j: te.tanh(b[i - j + n - 1] + u[i] + v[j]), "g")


def idiomatic(u, v, b):
    n = u.shape[0]
    i = jnp.arange(n)
    return jnp.tanh(b[i[:, None] - i + n - 1] + u[:, None] + v)

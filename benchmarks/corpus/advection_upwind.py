"""q'[i,j] = q - dt (max(a, 0) (q - q[i-1]) + min(a, 0) (q[i+1] - q)), each direction with its velocity, periodic"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "upwind advection"
SIZES = {
    "full": dict(n=768),
    "quick": dict(n=32),
    "tiny": dict(n=4),
}
DT = 0.1


def inputs(n):
    return normal(n, n), normal(n, n), normal(n, n)


def expression(q, a, b):
    n, m = q.shape

    def step(i, j):
        west, east = q[i, j] - q[(i - 1) % n, j], q[(i + 1) % n, j] - q[i, j]
        south, north = q[i, j] - q[i, (j - 1) % m], q[i, (j + 1) % m] - q[i, j]
        across = te.select(a[i, j] > 0, west, east) * a[i, j]
        along = te.select(b[i, j] > 0, south, north) * b[i, j]
        return q[i, j] - DT * (across + along)

    return te.compute((n, m), step, "q1")


def idiomatic(q, a, b):
    across = jnp.where(a > 0, q - jnp.roll(q, 1, 0), jnp.roll(q, -1, 0) - q) * a
    along = jnp.where(b > 0, q - jnp.roll(q, 1, 1), jnp.roll(q, -1, 1) - q) * b
    return q - DT * (across + along)

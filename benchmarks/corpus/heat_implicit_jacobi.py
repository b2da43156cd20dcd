"""u' = (b + c (u[i-1] + u[i+1] + u[j-1] + u[j+1])) / (1 + 4 c), five times: Jacobi sweeps with zeros outside"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "Jacobi sweeps, 5 steps"
SIZES = {
    "full": dict(n=512),
    "quick": dict(n=24),
    "tiny": dict(n=5),
}
STEPS, C = 5, 0.8


def inputs(n):
    return normal(n, n), normal(n, n)


def expression(u, b):
    n, m = u.shape
    for _ in range(STEPS):

        def step(i, j, u=u):
            up, down = te.select(i > 0, u[i - 1, j], 0.0), te.select(i < n - 1, u[i + 1, j], 0.0)
            left, right = te.select(j > 0, u[i, j - 1], 0.0), te.select(j < m - 1, u[i, j + 1], 0.0)
            return (b[i, j] + C * (up + down + left + right)) / (1 + 4 * C)

        u = te.compute((n, m), step, "u")
    return u


def idiomatic(u, b):
    for _ in range(STEPS):
        p = jnp.pad(u, 1)
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        u = (b + C * around) / (1 + 4 * C)
    return u

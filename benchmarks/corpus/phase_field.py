"""p' = p + dt lap(p^3 - p - k lap p): a step of Cahn and Hilliard, periodic"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "phase field step"
SIZES = {
    "full": dict(n=512),
    "quick": dict(n=24),
    "tiny": dict(n=4),
}
K, DT = 0.5, 0.01


def inputs(n):
    return (normal(n, n, scale=0.3),)


def expression(p):
    n, m = p.shape

    def laplacian(a, i, j):
        around = a[(i - 1) % n, j] + a[(i + 1) % n, j] + a[i, (j - 1) % m] + a[i, (j + 1) % m]
        return around - 4 * a[i, j]

    mu = te.compute((n, m), lambda i, j: p[i, j] ** 3 - p[i, j] - K * laplacian(p, i, j), "mu")
    return te.compute((n, m), lambda i, j: p[i, j] + DT * laplacian(mu, i, j), "p1")


def idiomatic(p):
    def laplacian(a):
        return sum(jnp.roll(a, s, d) for s in (1, -1) for d in (0, 1)) - 4 * a

    return p + DT * laplacian(p**3 - p - K * laplacian(p))

"""v = u + dt sum over four neighbours of g(d) d, d the difference, g = 1 / (1 + d^2 / k^2): a step of nonlinear diffusion"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "Perona-Malik step"
SIZES = {
    "full": dict(b=4, n=512),
    "quick": dict(b=2, n=32),
    "tiny": dict(b=1, n=4),
}
DT, K2 = 0.2, 0.5


def inputs(b, n):
    return (normal(b, n, n),)


def flux(d):
    return d / (1.0 + d * d / K2)


def expression(u):
    _, n, m = u.shape

    def element(b, i, j):
        here = u[b, i, j]
        north = te.select(i > 0, u[b, i - 1, j] - here, 0.0)
        south = te.select(i < n - 1, u[b, i + 1, j] - here, 0.0)
        west = te.select(j > 0, u[b, i, j - 1] - here, 0.0)
        east = te.select(j < m - 1, u[b, i, j + 1] - here, 0.0)
        return here + DT * (flux(north) + flux(south) + flux(west) + flux(east))

    return te.compute(u.shape, element, "v")


def idiomatic(u):
    padded = jnp.pad(u, ((0, 0), (1, 1), (1, 1)), mode="edge")
    moved = padded[:, :-2, 1:-1], padded[:, 2:, 1:-1], padded[:, 1:-1, :-2], padded[:, 1:-1, 2:]
    return u + DT * sum(flux(v - u) for v in moved)

"""f'[q,i,j] = g[q, i - cx[q], j - cy[q]], g = f - (f - feq(rho, u)) / tau: nine directions, streamed periodically"""

import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.inputs import given, uniform

TITLE = "lattice Boltzmann step, D2Q9"
SIZES = {
    "full": dict(n=256),
    "quick": dict(n=16),
    "tiny": dict(n=3),
}
DIRECTIONS = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
C = np.array(DIRECTIONS, "float32")
W = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, "float32")
TAU = 0.8
WITH_RESPECT_TO = (0,)


def inputs(n):
    return uniform(9, n, n, low=0.8, high=1.2), given(W), given(C)


def expression(f, weight, way):
    _, n, m = f.shape
    q = te.reduce_axis((0, 9), "q")
    rho = te.compute((n, m), lambda i, j: te.sum(weight[q] * f[q, i, j], axis=q), "rho")
    momentum = te.compute(
        (2, n, m), lambda d, i, j: te.sum(weight[q] * way[q, d] * f[q, i, j], axis=q), "momentum"
    )

    def collide(q, i, j):
        ux, uy = momentum[0, i, j] / rho[i, j], momentum[1, i, j] / rho[i, j]
        along = way[q, 0] * ux + way[q, 1] * uy
        equal = rho[i, j] * (1 + 3 * along + 4.5 * along * along - 1.5 * (ux * ux + uy * uy))
        return f[q, i, j] - (f[q, i, j] - equal) / TAU

    after = te.compute(f.shape, collide, "after")
    moved = [
        te.compute((n, m), lambda i, j, q=q, x=x, y=y: after[q, (i - x) % n, (j - y) % m], f"f{q}")
        for q, (x, y) in enumerate(DIRECTIONS)
    ]
    return tuple(moved)


def idiomatic(f, weights, directions):
    rho = jnp.einsum("q,qij->ij", weights, f)
    u = jnp.einsum("q,qd,qij->dij", weights, directions, f) / rho
    along = jnp.einsum("qd,dij->qij", directions, u)
    equal = rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * jnp.sum(u * u, axis=0))
    after = f - (f - equal) / TAU
    return tuple(jnp.roll(after[q], (x, y), (0, 1)) for q, (x, y) in enumerate(DIRECTIONS))

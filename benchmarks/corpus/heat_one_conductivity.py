"""u' = u + k (u[i-1] + u[i+1] + u[j-1] + u[j+1] - 4 u) inside, 12 times, the edges held: heat, with the gradient by its one conductivity"""

import jax

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "heat, 12 steps, one conductivity"
SIZES = {"full": dict(n=200), "quick": dict(n=24), "tiny": dict(n=5)}
STEPS = 12


def inputs(n):
    return normal(n, n), uniform(1, low=0.1, high=0.2)


def expression(u, k):
    n, m = u.shape
    for _ in range(STEPS):

        def step(i, j, u=u):
            inside = (i >= 1) & (i < n - 1) & (j >= 1) & (j < m - 1)
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
            return te.select(inside, u[i, j] + k[0] * around, u[i, j])

        u = te.compute((n, m), step, "u")
    return u


def _step(u, k):
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return u.at[1:-1, 1:-1].add(k[0] * around)


def idiomatic(u, k):
    for _ in range(STEPS):
        u = _step(u, k)
    return u


def by_hand(u, k):
    return jax.lax.scan(lambda u, _: (_step(u, k), None), u, None, length=STEPS)[0]

"""Ten steps of u''[i,j] = 2 u'[i,j] - u[i,j] + v[i,j] (u'[i-1,j] + u'[i+1,j] + u'[i,j-1] + u'[i,j+1] - 4 u'[i,j]), held at the edges"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "wave equation, 10 steps, held edges"
SIZES = {"full": dict(n=256), "quick": dict(n=24), "tiny": dict(n=5)}
STEPS = 10


def inputs(n):
    return normal(n, n), uniform(n, n, high=0.25)


def expression(u, v):
    n, m = u.shape
    before, now = u, u
    for _ in range(STEPS):

        def step(i, j, before=before, now=now):
            up, down = now[te.maximum(i - 1, 0), j], now[te.minimum(i + 1, n - 1), j]
            left, right = now[i, te.maximum(j - 1, 0)], now[i, te.minimum(j + 1, m - 1)]
            around = up + down + left + right - 4 * now[i, j]
            return 2 * now[i, j] - before[i, j] + v[i, j] * around

        before, now = now, te.compute((n, m), step, "u")
    return now


def idiomatic(u, v):
    before, now = u, u
    for _ in range(STEPS):
        p = jnp.pad(now, 1, mode="edge")
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * now
        before, now = now, 2 * now - before + v * around
    return now

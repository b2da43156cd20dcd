"""y[i,j] = sum_pq w[i,j,p,q] x[i + p, j + q] / sum_pq w, w = exp(-(x[i + p, j + q] - x[i,j])^2), indices modulo the size, a window of 7 x 7"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "non-local means, periodic 7x7"
SIZES = {"full": dict(n=256), "quick": dict(n=24), "tiny": dict(n=9)}
R = 3
ABOVE = {"temporaries": (2.0, "copies with continued ends, of what both passes read")}


def inputs(n):
    return (normal(n, n),)


def expression(x):
    n, m = x.shape
    p, q = te.reduce_axis((-R, R + 1), "p"), te.reduce_axis((-R, R + 1), "q")

    def near(i, j):
        return x[(i + p) % n, (j + q) % m]

    def weight(i, j):
        return te.exp(-((near(i, j) - x[i, j]) ** 2))

    total = te.compute((n, m), lambda i, j: te.sum(weight(i, j), axis=[p, q]), "total")
    weighted = te.compute((n, m), lambda i, j: te.sum(weight(i, j) * near(i, j), axis=[p, q]), "weighted")
    return te.compute((n, m), lambda i, j: weighted[i, j] / total[i, j], "y")


def idiomatic(x):
    (n, m), wrapped = x.shape, jnp.pad(x, R, mode="wrap")
    total = weighted = 0.0
    for p in range(2 * R + 1):
        for q in range(2 * R + 1):
            near = wrapped[p : p + n, q : q + m]
            weight = jnp.exp(-((near - x) ** 2))
            total, weighted = total + weight, weighted + weight * near
    return weighted / total

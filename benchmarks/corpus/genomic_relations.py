"""a[i,j] = sum_k (g[i,k] - 2 p[k]) (g[j,k] - 2 p[k]) / (2 p[k] (1 - p[k])): relations between genomes"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "relations between genomes"
SIZES = {"full": dict(n=200, m=2000), "quick": dict(n=24, m=96), "tiny": dict(n=3, m=4)}
HOLDS_BACK = "the two factors of the product are alike, and the contraction of what flows back with one of them is computed once for each: four products for three"


def inputs(n, m):
    return uniform(n, m, high=2.0), uniform(m, low=0.2, high=0.8)


def expression(g, p):
    n, m = g.shape
    k = te.reduce_axis((0, m), "k")
    return te.compute(
        (n, n),
        lambda i, j: (
            te.sum((g[i, k] - 2 * p[k]) * (g[j, k] - 2 * p[k]) / (2 * p[k] * (1 - p[k])), axis=k) / m
        ),
        "a",
    )


def idiomatic(g, p):
    z = (g - 2 * p) / jnp.sqrt(2 * p * (1 - p))
    return z @ z.T / g.shape[1]

"""v[k,c] = sum_i a[i,k] (x[i,c] - m[k,c]): residuals to centres, weighted by their assignment"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "residuals to centres (VLAD)"
SIZES = {"full": dict(n=2048, k=64, c=64), "quick": dict(n=64, k=8, c=16), "tiny": dict(n=5, k=3, c=2)}


def inputs(n, k, c):
    return uniform(n, k), normal(n, c), normal(k, c)


def expression(a, x, m):
    (n, kk), c = a.shape, x.shape[1]
    i = te.reduce_axis((0, n), "i")
    return te.compute((kk, c), lambda k, c: te.sum(a[i, k] * (x[i, c] - m[k, c]), axis=i), "v")


def idiomatic(a, x, m):
    return jnp.sum(a[:, :, None] * (x[:, None, :] - m[None]), axis=0)


def by_hand(a, x, m):
    return a.T @ x - a.sum(0)[:, None] * m

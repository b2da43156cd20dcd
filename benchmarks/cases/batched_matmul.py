"""y[b,i,j] = sum_k x[b,i,k] w[b,k,j]"""

import jaxte as te
from harness.inputs import normal

TITLE = "batched matmul"
SIZES = {"full": dict(b=16, n=256), "quick": dict(b=8, n=64), "tiny": dict(b=2, n=3)}


def inputs(b, n):
    return normal(b, n, n), normal(b, n, n)


def expression(x, w):
    k = te.reduce_axis((0, x.shape[2]), "k")
    shape = (*x.shape[:2], w.shape[2])
    return te.compute(shape, lambda b, i, j: te.sum(x[b, i, k] * w[b, k, j], axis=k), "y")


def idiomatic(x, w):
    return x @ w


def torch(torch, x, w):
    return x @ w

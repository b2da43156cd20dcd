"""d[n,k] = sum_ij (x[n,i] - m[k,i]) a[k,i,j] (x[n,j] - m[k,j]): squared distances, a metric for each centre"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "Mahalanobis distances"
SIZES = {
    "full": dict(n=2000, k=20, d=12),
    "quick": dict(n=30, k=4, d=5),
    "tiny": dict(n=3, k=2, d=2),
}


def inputs(n, k, d):
    return normal(n, d), normal(k, d), normal(k, d, d)


def expression(x, mean, a):
    i, j = te.reduce_axis((0, x.shape[1]), "i"), te.reduce_axis((0, x.shape[1]), "j")

    def element(n, k):
        return te.sum((x[n, i] - mean[k, i]) * a[k, i, j] * (x[n, j] - mean[k, j]), axis=(i, j))

    return te.compute((x.shape[0], mean.shape[0]), element, "d")


def idiomatic(x, mean, a):
    apart = x[:, None] - mean
    return jnp.einsum("nki,kij,nkj->nk", apart, a, apart)

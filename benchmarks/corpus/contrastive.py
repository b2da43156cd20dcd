"""loss = mean_i (log sum_j exp(s[i,j]) - s[i,i]), s = x y^T / t: pairs of a batch told apart"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "contrastive loss"
SIZES = {
    "full": dict(n=1024, d=128),
    "quick": dict(n=48, d=16),
    "tiny": dict(n=3, d=2),
}
T = 4.0


def inputs(n, d):
    return normal(n, d), normal(n, d)


def expression(x, y):
    n, d = x.shape
    i, j, k = te.reduce_axis((0, n), "i"), te.reduce_axis((0, n), "j"), te.reduce_axis((0, d), "k")
    s = te.compute((n, n), lambda i, j: te.sum(x[i, k] * y[j, k], axis=k) / T, "s")
    m = te.compute((n,), lambda i: te.max(s[i, j], axis=j), "m")
    z = te.compute((n,), lambda i: te.sum(te.exp(s[i, j] - m[i]), axis=j), "z")
    return te.compute((), lambda: te.sum(te.log(z[i]) + m[i] - s[i, i], axis=i) / n, "loss")


def idiomatic(x, y):
    s = x @ y.T / T
    return jnp.mean(jax.nn.logsumexp(s, axis=1) - jnp.diag(s))

"""v[i,c] = sum_j k[i,j] / (sum_l k[i,l]) (y[j,c] - x[i,c]), k[i,j] = exp(-|x_i - y_j|^2 / 2): one step of mean shift"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "step of mean shift"
SIZES = {"full": dict(n=1024, c=8), "quick": dict(n=64, c=8), "tiny": dict(n=5, c=3)}


def inputs(n, c):
    return normal(n, c), normal(n, c)


def expression(x, y):
    n, f = x.shape
    j, q = te.reduce_axis((0, n), "j"), te.reduce_axis((0, f), "q")
    k = te.compute((n, n), lambda i, j: te.exp(-0.5 * te.sum((x[i, q] - y[j, q]) ** 2, axis=q)), "k")
    s = te.compute((n,), lambda i: te.sum(k[i, j], axis=j), "s")
    return te.compute((n, f), lambda i, c: te.sum(k[i, j] / s[i] * (y[j, c] - x[i, c]), axis=j), "v")


def idiomatic(x, y):
    k = jnp.exp(-0.5 * jnp.sum((x[:, None] - y[None]) ** 2, axis=-1))
    w = k / k.sum(1, keepdims=True)
    return jnp.sum(w[:, :, None] * (y[None] - x[:, None]), axis=1)


def by_hand(x, y):
    d2 = jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - 2 * x @ y.T
    return jax.nn.softmax(-0.5 * d2, axis=1) @ y - x

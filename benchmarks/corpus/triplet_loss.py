"""sum_ijk max(0, D[i,j] - D[i,k] + margin) where i and j are of one class and i and k of two, over all triplets"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "triplet loss, all triplets"
SIZES = {
    "full": dict(n=96, d=64),
    "quick": dict(n=12, d=8),
    "tiny": dict(n=3, d=2),
}


def inputs(n, d):
    return normal(n, d), integers(n, below=4)


def expression(x, label):
    n, size = x.shape
    d = te.reduce_axis((0, size), "d")
    far = te.compute((n, n), lambda i, j: te.sum((x[i, d] - x[j, d]) ** 2, axis=d), "far")
    i, j, k = (te.reduce_axis((0, n), name) for name in "ijk")
    alike = (label[i] == label[j]) & (label[i] != label[k])
    excess = te.select(alike, te.relu(far[i, j] - far[i, k] + 1.0), 0.0)
    return te.compute((), lambda: te.sum(excess, axis=(i, j, k)), "loss")


def idiomatic(x, label):
    far = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    same = label[:, None] == label
    alike = same[:, :, None] & ~same[:, None, :]
    excess = jax.nn.relu(far[:, :, None] - far[:, None, :] + 1.0)
    return jnp.sum(jnp.where(alike, excess, 0.0))

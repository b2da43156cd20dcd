"""s[i] = sum_j exp(-|x[i] - y[j]|^2) b[j], points in three dimensions"""

import jax.numpy as jnp

import jaxte as te
from forms.tiles import gaussian_sum
from harness.inputs import normal

TITLE = "Gaussian sum, 100,000 x 100,000 points"
SIZES = {"full": dict(n=100_000), "quick": dict(n=1500), "tiny": dict(n=7)}
LEFT_OUT = {"full": dict.fromkeys(("idiomatic", "torch"), "the distances of all pairs take 40 GB")}
TOLERANCE = 1e-3  # squares by a product cancel


def inputs(n):
    return normal(n, 3), normal(n, 3), normal(n)


def expression(x, y, b):
    j, d = te.reduce_axis((0, y.shape[0]), "j"), te.reduce_axis((0, x.shape[1]), "d")

    def body(i):
        return te.sum(te.exp(-te.sum((x[i, d] - y[j, d]) ** 2, axis=d)) * b[j], axis=j)

    return te.compute((x.shape[0],), body, "s")


def idiomatic(x, y, b):
    return jnp.exp(-jnp.sum((x[:, None] - y[None]) ** 2, -1)) @ b


by_hand = gaussian_sum


def torch(torch, x, y, b):
    return torch.exp(-((x[:, None] - y[None]) ** 2).sum(-1)) @ b

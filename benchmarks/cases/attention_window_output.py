"""o[h,i,d] = sum_k p[h,i,k] values[h,i+k,d], k below 65, values padded by 32 on both sides"""

import jax.numpy as jnp

import jaxte as te
from forms.bands import weighted
from harness.inputs import normal

TITLE = "sliding-window attention output"
SIZES = {
    "full": dict(heads=8, n=1024, d=64, window=65),
    "quick": dict(heads=2, n=512, d=32, window=65),
    "tiny": dict(heads=2, n=6, d=3, window=3),
}
SPELLINGS = {"idiomatic": "the window gathered, values[:, i + k]", "by hand": "block-skew"}


def inputs(heads, n, d, window):
    return normal(heads, n, window), normal(heads, n + window - 1, d)


def expression(p, values):
    heads, n, window = p.shape
    k = te.reduce_axis((0, window), "k")
    shape = (heads, n, values.shape[2])
    return te.compute(shape, lambda h, i, d: te.sum(p[h, i, k] * values[h, i + k, d], axis=k), "o")


def idiomatic(p, values):
    at = jnp.arange(p.shape[1])[:, None] + jnp.arange(p.shape[2])
    return jnp.einsum("hik,hikd->hid", p, values[:, at])


def by_hand(p, values):
    return weighted(p, values, min(64, p.shape[1]))


def torch(torch, p, values):
    return torch.einsum("hik,hidk->hid", p, values.unfold(1, p.shape[2], 1))

"""o[h,i,d] = sum_k p[h,i,k] values[h,i+k,d], k below the window, values padded by half of it on both sides"""

import jax
import jax.numpy as jnp

import jaxte as te
from forms.bands import scores, shifted, shifted_back
from harness.inputs import normal

TITLE = "sliding-window attention output"
SIZES = {
    "full": dict(heads=8, n=1024, d=64, window=65),
    "quick": dict(heads=2, n=512, d=32, window=17),
    "tiny": dict(heads=2, n=6, d=3, window=3),
}
SPELLINGS = {
    "idiomatic": "a slice of the values for each k, summed",
    "indexed": "the window gathered, values[:, i + k]",
    "by hand": "slices summed, and the gradient of p by block-skew",
}


def inputs(heads, n, d, window):
    return normal(heads, n, window), normal(heads, n + window - 1, d)


def expression(p, values):
    heads, n, window = p.shape
    k = te.reduce_axis((0, window), "k")
    shape = (heads, n, values.shape[2])
    return te.compute(shape, lambda h, i, d: te.sum(p[h, i, k] * values[h, i + k, d], axis=k), "o")


def idiomatic(p, values):
    n = p.shape[1]
    return sum(p[:, :, k, None] * values[:, k : k + n] for k in range(p.shape[2]))


def indexed(p, values):
    at = jnp.arange(p.shape[1])[:, None] + jnp.arange(p.shape[2])
    return jnp.einsum("hik,hikd->hid", p, values[:, at])


@jax.custom_vjp
def by_hand(p, values):
    return shifted(p, values)


def _backward(saved, h):
    p, values = saved
    return scores(h, values, p.shape[2], min(64, p.shape[1])), shifted_back(p, h)


by_hand.defvjp(lambda p, values: (shifted(p, values), (p, values)), _backward)


def torch(torch, p, values):
    return torch.einsum("hik,hidk->hid", p, values.unfold(1, p.shape[2], 1))

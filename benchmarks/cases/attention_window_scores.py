"""s[h,i,k] = sum_d q[h,i,d] keys[h,i+k,d], k below the window, keys padded by half of it on both sides"""

import jax
import jax.numpy as jnp

import jaxte as te
from forms.bands import scores, shifted, shifted_back
from harness.inputs import normal

TITLE = "sliding-window attention scores"
SIZES = {
    "full": dict(heads=8, n=1024, d=64, window=65),
    "quick": dict(heads=2, n=512, d=32, window=17),
    "tiny": dict(heads=2, n=6, d=3, window=3),
}
SPELLINGS = {
    "idiomatic": "a slice of the keys for each k, stacked",
    "indexed": "the window gathered, keys[:, i + k]",
    "by hand": "block-skew, and the gradients by slices summed",
}


def inputs(heads, n, d, window):
    return normal(heads, n, d), normal(heads, n + window - 1, d)


def expression(q, keys):
    heads, n, d = q.shape
    e = te.reduce_axis((0, d), "d")
    window = keys.shape[1] - n + 1
    return te.compute((heads, n, window), lambda h, i, k: te.sum(q[h, i, e] * keys[h, i + k, e], axis=e), "s")


def idiomatic(q, keys):
    n = q.shape[1]
    return jnp.stack([jnp.sum(q * keys[:, k : k + n], -1) for k in range(keys.shape[1] - n + 1)], -1)


def indexed(q, keys):
    n = q.shape[1]
    at = jnp.arange(n)[:, None] + jnp.arange(keys.shape[1] - n + 1)
    return jnp.einsum("hid,hikd->hik", q, keys[:, at])


@jax.custom_vjp
def by_hand(q, keys):
    return scores(q, keys, keys.shape[1] - q.shape[1] + 1, min(64, q.shape[1]))


def _backward(saved, h):
    q, keys = saved
    return shifted(h, keys), shifted_back(h, q)


by_hand.defvjp(lambda q, keys: (by_hand(q, keys), (q, keys)), _backward)


def torch(torch, q, keys):
    return torch.einsum("hid,hidk->hik", q, keys.unfold(1, keys.shape[1] - q.shape[1] + 1, 1))

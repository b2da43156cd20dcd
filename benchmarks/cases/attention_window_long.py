"""o[h,i,d] = sum_k softmax_k(sum_e q[h,i,e] keys[h,i+k,e]) values[h,i+k,d], k below the window, keys and values padded in front"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "sliding-window attention, long"
SIZES = {
    "full": dict(heads=8, n=10_000, d=64, window=512),
    "quick": dict(heads=2, n=1_000, d=32, window=64),
    "tiny": dict(heads=2, n=6, d=3, window=3),
}
LEFT_OUT = {"full": {"indexed": "the gathered windows take 10.5 GB twice"}}
WORKS_MORE = ("idiomatic",)
SPELLINGS = {
    "idiomatic": "a mask on all pairs",
    "by hand": "blocks of queries by lax.map, computed again backward",
}


def inputs(heads, n, d, window):
    return normal(heads, n, d, scale=0.3), normal(heads, n + window - 1, d), normal(heads, n + window - 1, d)


def expression(q, keys, values):
    heads, n, d = q.shape
    window = keys.shape[1] - n + 1
    e, k = te.reduce_axis((0, d), "e"), te.reduce_axis((0, window), "k")
    shape = (heads, n, window)
    s = te.compute(shape, lambda h, i, k: te.sum(q[h, i, e] * keys[h, i + k, e], axis=e), "s")
    p = te.ops.softmax(s)
    return te.compute(q.shape, lambda h, i, d: te.sum(p[h, i, k] * values[h, i + k, d], axis=k), "o")


def idiomatic(q, keys, values):
    n, m = q.shape[1], keys.shape[1]
    reach = jnp.arange(m) - jnp.arange(n)[:, None]
    s = jnp.where((reach >= 0) & (reach <= m - n), jnp.einsum("hid,hjd->hij", q, keys), -jnp.inf)
    return jnp.einsum("hij,hjd->hid", jax.nn.softmax(s), values)


def indexed(q, keys, values):
    at = jnp.arange(q.shape[1])[:, None] + jnp.arange(keys.shape[1] - q.shape[1] + 1)
    p = jax.nn.softmax(jnp.einsum("hid,hikd->hik", q, keys[:, at]))
    return jnp.einsum("hik,hikd->hid", p, values[:, at])


def by_hand(q, keys, values):
    _heads, n, _d = q.shape
    window = keys.shape[1] - n + 1
    rows = next(r for r in (250, 125, 6) if n % r == 0)
    reach = jnp.arange(rows + window - 1) - jnp.arange(rows)[:, None]
    inside = (reach >= 0) & (reach < window)

    @partial(jax.checkpoint, prevent_cse=False)
    def block(start):
        mine = lax.dynamic_slice_in_dim(q, start, rows, 1)
        theirs, given = (lax.dynamic_slice_in_dim(x, start, rows + window - 1, 1) for x in (keys, values))
        s = jnp.where(inside, jnp.einsum("hid,hjd->hij", mine, theirs), -jnp.inf)
        return jnp.einsum("hij,hjd->hid", jax.nn.softmax(s), given)

    return jnp.moveaxis(lax.map(block, jnp.arange(0, n, rows)), 0, 1).reshape(q.shape)

"""y[i] = sum_{j <= i} (f(q[i]) . f(k[j])) v[j] / sum_{j <= i} f(q[i]) . f(k[j]), f = elu + 1: causal, one sum"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "causal linear attention"
SIZES = {
    "full": dict(h=8, n=512, d=32),
    "quick": dict(h=2, n=24, d=4),
    "tiny": dict(h=1, n=4, d=2),
}
ABOVE = {"while": (1.0, "a short cumulative sum is a loop, which is faster than the passes of one")}


def inputs(h, n, d):
    return normal(h, n, d), normal(h, n, d), normal(h, n, d)


def expression(q, k, v):
    h, n, size = q.shape
    fq = te.compute(q.shape, lambda h, i, d: te.elu(q[h, i, d]) + 1.0, "fq")
    fk = te.compute(k.shape, lambda h, i, d: te.elu(k[h, i, d]) + 1.0, "fk")
    d, j = te.reduce_axis((0, size), "d"), te.reduce_axis((0, n), "j")
    above = te.compute(
        v.shape,
        lambda h, i, e: te.sum(fq[h, i, d] * fk[h, j, d] * v[h, j, e], axis=(d, j), where=j <= i),
        "above",
    )
    below = te.compute(
        (h, n), lambda h, i: te.sum(fq[h, i, d] * fk[h, j, d], axis=(d, j), where=j <= i), "below"
    )
    return te.compute(v.shape, lambda h, i, e: above[h, i, e] / below[h, i], "y")


def idiomatic(q, k, v):
    fq, fk = jax.nn.elu(q) + 1.0, jax.nn.elu(k) + 1.0
    scores = jnp.tril(jnp.einsum("hid,hjd->hij", fq, fk))
    return jnp.einsum("hij,hje->hie", scores, v) / jnp.sum(scores, axis=-1)[..., None]

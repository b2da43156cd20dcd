"""softmax over j <= i of q[h,i].k[h,j] / sqrt(d) - slope[h] (i - j), times v: attention with linear biases"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "attention with linear biases"
SIZES = {
    "full": dict(h=8, n=512, d=64),
    "quick": dict(h=2, n=24, d=8),
    "tiny": dict(h=1, n=4, d=2),
}


def inputs(h, n, d):
    return normal(h, n, d), normal(h, n, d), normal(h, n, d), uniform(h)


def expression(q, k, v, slope):
    h, n, size = q.shape
    d, j = te.reduce_axis((0, size), "d"), te.reduce_axis((0, n), "j")
    scores = te.compute(
        (h, n, n),
        lambda h, i, j: te.sum(q[h, i, d] * k[h, j, d], axis=d) / size**0.5 - slope[h] * (i - j),
        "scores",
    )
    most = te.compute((h, n), lambda h, i: te.max(scores[h, i, j], axis=j, where=j <= i), "most")
    weights = te.compute(
        (h, n, n),
        lambda h, i, j: te.select(j <= i, te.exp(scores[h, i, j] - te.stop_gradient(most)[h, i]), 0.0),
        "weights",
    )
    total = te.compute((h, n), lambda h, i: te.sum(weights[h, i, j], axis=j), "total")
    return te.compute(
        v.shape, lambda h, i, d: te.sum(weights[h, i, j] * v[h, j, d], axis=j) / total[h, i], "y"
    )


def idiomatic(q, k, v, slope):
    _, n, size = q.shape
    apart = jnp.arange(n)[:, None] - jnp.arange(n)
    scores = jnp.einsum("hid,hjd->hij", q, k) / size**0.5 - slope[:, None, None] * apart
    weights = jax.nn.softmax(jnp.where(apart >= 0, scores, -jnp.inf), axis=-1)
    return jnp.einsum("hij,hjd->hid", weights, v)

"""y[b,t,h,e] = x[b,t,h,e] cos[t,e] + (e < d/2 ? -x[b,t,h,e + d/2] : x[b,t,h,e - d/2]) sin[t,e]: rotary positions"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "rotary positions, halves by select"
SIZES = {
    "full": dict(b=4, t=1024, h=8, d=64),
    "quick": dict(b=2, t=32, h=2, d=16),
    "tiny": dict(b=1, t=3, h=2, d=4),
}
WITH_RESPECT_TO = (0,)


def inputs(b, t, h, d):
    return normal(b, t, h, d), normal(t, d), normal(t, d)


def expression(x, cos, sin):
    half = x.shape[3] // 2

    def element(b, t, h, e):
        rotated = te.select(e < half, -x[b, t, h, e + half], x[b, t, h, e - half])
        return x[b, t, h, e] * cos[t, e] + rotated * sin[t, e]

    return te.compute(x.shape, element, "y")


def idiomatic(x, cos, sin):
    half = x.shape[3] // 2
    rotated = jnp.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos[:, None, :] + rotated * sin[:, None, :]

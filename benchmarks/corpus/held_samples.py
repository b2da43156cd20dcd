"""out[b,q,c] = bilinear sample of x[b,:,:,c] at (u, v)[b,q], positions held inside: samples of an image at points that are computed"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "samples at positions held inside"
SIZES = {
    "full": dict(b=4, n=64, q=4096, c=16),
    "quick": dict(b=2, n=16, q=64, c=4),
    "tiny": dict(b=1, n=4, q=5, c=2),
}
WITH_RESPECT_TO = (0,)


def inputs(b, n, q, c):
    return normal(b, n, n, c), uniform(b, q, low=-4.0, high=n + 4.0), uniform(b, q, low=-4.0, high=n + 4.0)


def expression(x, u, v):
    b, n, m, c = x.shape
    held = lambda z, top: te.minimum(te.maximum(z, 0.0), top - 1.001)  # noqa: E731
    i = te.compute(u.shape, lambda b, q: te.cast(te.floor(held(u[b, q], n)), "int32"), "i")
    j = te.compute(v.shape, lambda b, q: te.cast(te.floor(held(v[b, q], m)), "int32"), "j")

    def element(b, q, c):
        y, z = held(u[b, q], n) - i[b, q], held(v[b, q], m) - j[b, q]
        corner = lambda k, o: x[b, i[b, q] + k, j[b, q] + o, c]  # noqa: E731
        above = corner(0, 0) * (1 - z) + corner(0, 1) * z
        below = corner(1, 0) * (1 - z) + corner(1, 1) * z
        return above * (1 - y) + below * y

    return te.compute((b, u.shape[1], c), element, "out")


def idiomatic(x, u, v):
    batch = jnp.arange(x.shape[0])[:, None]
    u, v = jnp.clip(u, 0, x.shape[1] - 1.001), jnp.clip(v, 0, x.shape[2] - 1.001)
    i, j = jnp.floor(u).astype("int32"), jnp.floor(v).astype("int32")
    y, z = (u - i)[..., None], (v - j)[..., None]
    above = x[batch, i, j] * (1 - z) + x[batch, i, j + 1] * z
    below = x[batch, i + 1, j] * (1 - z) + x[batch, i + 1, j + 1] * z
    return above * (1 - y) + below * y

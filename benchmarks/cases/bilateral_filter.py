"""y[n,i,j] = sum_pq k x[n,i+p,j+q] / sum_pq k, k = exp(-(p-2)^2/8 - (q-2)^2/8 - 2 (x[n,i+p,j+q] - x[n,i+2,j+2])^2), p, q below 5"""

import jax.numpy as jnp

import jaxte as te
from forms.indices import windows
from harness.inputs import normal

TITLE = "bilateral filter 5x5"
SIZES = {"full": dict(n=4, h=256), "quick": dict(n=2, h=64), "tiny": dict(n=1, h=7)}
SIZE, BEFORE = 5, 2


def inputs(n, h):
    return (normal(n, h, h),)


def expression(x):
    n, h, w = x.shape
    p, q, r, s = (te.reduce_axis((0, SIZE), name) for name in "pqrs")

    def kernel(n, i, j, p, q):
        far = te.cast((p - BEFORE) * (p - BEFORE) + (q - BEFORE) * (q - BEFORE), "float32") / 8
        return te.exp(-far - 2 * (x[n, i + p, j + q] - x[n, i + BEFORE, j + BEFORE]) ** 2)

    def body(n, i, j):
        top = te.sum(kernel(n, i, j, p, q) * x[n, i + p, j + q], axis=[p, q])
        return top / te.sum(kernel(n, i, j, r, s), axis=[r, s])

    return te.compute((n, h - SIZE + 1, w - SIZE + 1), body, "y")


def idiomatic(x):
    _n, h, w = x.shape
    h, w = h - SIZE + 1, w - SIZE + 1
    centre = x[:, BEFORE : BEFORE + h, BEFORE : BEFORE + w]
    top, bottom = 0.0, 0.0
    for p in range(SIZE):
        for q in range(SIZE):
            tap = x[:, p : p + h, q : q + w]
            k = jnp.exp(-((p - BEFORE) ** 2 + (q - BEFORE) ** 2) / 8 - 2 * (tap - centre) ** 2)
            top, bottom = top + k * tap, bottom + k
    return top / bottom


def indexed(x):
    taps = windows(x, SIZE)
    far = (jnp.arange(SIZE) - BEFORE) ** 2 / 8
    centre = taps[..., BEFORE, BEFORE][..., None, None]
    k = jnp.exp(-(far[:, None] + far) - 2 * (taps - centre) ** 2)
    return jnp.sum(k * taps, (3, 4)) / jnp.sum(k, (3, 4))

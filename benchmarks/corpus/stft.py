"""y[b,i,f] = sum_t x[b, h i + t] C[t, f]: a short-time Fourier transform, its matrix of cosines given"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "short-time Fourier transform"
SIZES = {
    "full": dict(b=8, n=32768, window=512),
    "quick": dict(b=2, n=1024, window=128),
    "tiny": dict(b=1, n=160, window=32),
}


def inputs(b, n, window):
    return normal(b, n), normal(window, window // 2 + 1)


def expression(x, c):
    hop = c.shape[0] // 4
    t = te.reduce_axis((0, c.shape[0]), "t")
    frames = (x.shape[1] - c.shape[0]) // hop + 1

    def element(b, i, f):
        return te.sum(x[b, hop * i + t] * c[t, f], axis=t)

    return te.compute((x.shape[0], frames, c.shape[1]), element, "y")


def idiomatic(x, c):
    hop = c.shape[0] // 4
    frames = (x.shape[1] - c.shape[0]) // hop + 1
    at = hop * jnp.arange(frames)[:, None] + jnp.arange(c.shape[0])
    return jnp.einsum("bit,tf->bif", x[:, at], c)

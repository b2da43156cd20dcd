"""y[b,i] = sum_j t[i-j+n-1] x[b,j]"""

import jax.numpy as jnp
import jax.scipy.linalg

import jaxte as te
from harness.inputs import normal

TITLE = "Toeplitz product"
SIZES = {"full": dict(b=64, n=1024), "quick": dict(b=16, n=256), "tiny": dict(b=2, n=4)}
TOLERANCE = 1e-3  # the transform rounds otherwise
HOLDS_BACK = "products of matrices; by hand is a Fourier transform, whose results depend on all of the data: by name or te.autotune only"


def inputs(b, n):
    return normal(2 * n - 1), normal(b, n)


def expression(t, x):
    n = x.shape[1]
    j = te.reduce_axis((0, n), "j")
    return te.compute(x.shape, lambda b, i: te.sum(t[i - j + n - 1] * x[b, j], axis=j), "y")


def idiomatic(t, x):
    n = x.shape[1]
    return x @ jax.scipy.linalg.toeplitz(t[n - 1 :], t[n - 1 :: -1]).T


def indexed(t, x):
    n = x.shape[1]
    return x @ t[jnp.arange(n)[:, None] - jnp.arange(n) + n - 1].T


def by_hand(t, x):
    """The product of Fourier transforms."""
    n = x.shape[1]
    length = 2 ** (3 * n - 2).bit_length()
    product = jnp.fft.rfft(t, length) * jnp.fft.rfft(x, length)
    return jnp.fft.irfft(product, length)[:, n - 1 : 2 * n - 1]

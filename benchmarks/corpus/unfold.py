"""y[b, (c k + p) k + q, i m + j] = x[b, c, i + p, j + q]: windows of an image as columns"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "unfold 3x3"
SIZES = {
    "full": dict(b=8, c=32, h=34),
    "quick": dict(b=2, c=4, h=14),
    "tiny": dict(b=1, c=2, h=5),
}
K = 3


def inputs(b, c, h):
    return (normal(b, c, h, h),)


def expression(x):
    b, c, h, w = x.shape
    m = w - K + 1

    def element(b, f, s):
        return x[b, f // (K * K), s // m + f // K % K, s % m + f % K]

    return te.compute((b, c * K * K, (h - K + 1) * m), element, "y")


def idiomatic(x):
    b, c, h, w = x.shape
    n, m = h - K + 1, w - K + 1
    shifted = [x[:, :, p : p + n, q : q + m] for p in range(K) for q in range(K)]
    return jnp.stack(shifted, axis=2).reshape(b, c * K * K, n * m)

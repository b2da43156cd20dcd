"""y[b,j] = a[b,j//2] x[b,j] + (x[b,j+1] if j even, else -x[b,j-1]): pairs scaled and turned, even and odd elements by choices"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "pairs scaled and turned"
SIZES = {
    "full": dict(b=256, n=4096),
    "quick": dict(b=8, n=64),
    "tiny": dict(b=2, n=6),
}


def inputs(b, n):
    return normal(b, n), normal(b, n // 2)


def expression(x, a):
    b, n = x.shape

    def element(b, j):
        after = te.select(j % 2 == 0, x[b, te.minimum(j + 1, n - 1)], 0.0)
        before = te.select(j % 2 == 1, x[b, te.maximum(j - 1, 0)], 0.0)
        return a[b, j // 2] * x[b, j] + after - before

    return te.compute((b, n), element, "y")


def idiomatic(x, a):
    pairs = x.reshape(x.shape[0], -1, 2)
    turned = jnp.stack([pairs[..., 1], -pairs[..., 0]], axis=-1)
    return (a[..., None] * pairs + turned).reshape(x.shape)


def by_hand(x, a):
    even, odd = x[:, ::2], x[:, 1::2]
    return jnp.stack([a * even + odd, a * odd - even], axis=-1).reshape(x.shape)

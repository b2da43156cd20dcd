"""y[b, i n + j, p w + q, c] = x[b, (w i + p + s) % h, (w j + q + s) % h, c]: windows of a shifted image, as attention has them"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "shifted windows of attention"
SIZES = {
    "full": dict(b=8, h=56, c=96),
    "quick": dict(b=2, h=28, c=8),
    "tiny": dict(b=1, h=14, c=3),
}
WINDOW = 7


def inputs(b, h, c):
    return (normal(b, h, h, c),)


def expression(x):
    w, s = WINDOW, WINDOW // 2
    b, h, _, c = x.shape
    n = h // w

    def element(b, a, t, c):
        return x[b, (a // n * w + t // w + s) % h, (a % n * w + t % w + s) % h, c]

    return te.compute((b, n * n, w * w, c), element, "y")


def idiomatic(x):
    w, s = WINDOW, WINDOW // 2
    b, h, _, c = x.shape
    n = h // w
    rolled = jnp.roll(x, (-s, -s), axis=(1, 2))
    return rolled.reshape(b, n, w, n, w, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, n * n, w * w, c)

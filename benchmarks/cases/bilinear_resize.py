"""y[n,c,i,j] = sum_pq a_p(i) a_q(j) x[n,c,(i-1)//2+p,(j-1)//2+q], p and q below 2, held to the edge

a_0(i) = 1/4 for even i and 3/4 for odd ones, a_1(i) = 1 - a_0(i): the bilinear value at ((i - 1/2) / 2, (j - 1/2) / 2).
"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "bilinear resize, twice the size"
SIZES = {"full": dict(n=8, c=16, h=64), "quick": dict(n=2, c=8, h=32), "tiny": dict(n=1, c=2, h=3)}


def inputs(n, c, h):
    return (normal(n, c, h, h),)


def expression(x):
    n, c, h, w = x.shape

    def tall(n, c, i, j):
        share = te.select(i % 2 == 0, 0.25, 0.75)
        above, below = x[n, c, te.maximum((i - 1) // 2, 0), j], x[n, c, te.minimum((i + 1) // 2, h - 1), j]
        return share * above + (1 - share) * below

    t = te.compute((n, c, 2 * h, w), tall, "t")

    def wide(n, c, i, j):
        share = te.select(j % 2 == 0, 0.25, 0.75)
        left, right = t[n, c, i, te.maximum((j - 1) // 2, 0)], t[n, c, i, te.minimum((j + 1) // 2, w - 1)]
        return share * left + (1 - share) * right

    return te.compute((n, c, 2 * h, 2 * w), wide, "y")


def idiomatic(x):
    n, c, h, w = x.shape
    return jax.image.resize(x, (n, c, 2 * h, 2 * w), "bilinear")


def indexed(x):
    def along(x, axis):
        i = jnp.arange(2 * x.shape[axis])
        share = jnp.where(i % 2 == 0, 0.25, 0.75).reshape([-1 if a == axis else 1 for a in range(4)])
        before, after = jnp.maximum((i - 1) // 2, 0), jnp.minimum((i + 1) // 2, x.shape[axis] - 1)
        return share * jnp.take(x, before, axis) + (1 - share) * jnp.take(x, after, axis)

    return along(along(x, 2), 3)


def by_hand(x):
    """Even and odd places each from one pair of neighbours, interleaved."""

    def along(x, axis):
        padded = jnp.pad(x, [(1, 1) if a == axis else (0, 0) for a in range(4)], mode="edge")
        before, after = jnp.split(padded, [x.shape[axis]], axis)[0], jnp.split(padded, [2], axis)[1]
        both = jnp.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], axis + 1)
        return both.reshape([2 * e if a == axis else e for a, e in enumerate(x.shape)])

    return along(along(x, 2), 3)


def torch(torch, x):
    return torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

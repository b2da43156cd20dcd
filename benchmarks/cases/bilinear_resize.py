"""y[n,c,i,j] = sum_pq a_p(i) a_q(j) x[n,c,(i-1)//2+p,(j-1)//2+q], p and q below 2, held to the edge

a_0(i) = 1/4 for even i and 3/4 for odd ones, a_1(i) = 1 - a_0(i): the bilinear value at ((i - 1/2) / 2, (j - 1/2) / 2).
"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "bilinear resize, twice the size"
SIZES = {"full": dict(n=8, c=16, h=64), "quick": dict(n=2, c=8, h=32), "tiny": dict(n=1, c=2, h=3)}
SPELLINGS = {"by hand": "even and odd places from pairs of neighbours, forward and backward"}


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


@jax.custom_vjp
def by_hand(x):
    """Even and odd places each from one pair of neighbours, interleaved."""

    def along(x, axis):
        padded = jnp.pad(x, [(1, 1) if a == axis else (0, 0) for a in range(4)], mode="edge")
        before, after = jnp.split(padded, [x.shape[axis]], axis)[0], jnp.split(padded, [2], axis)[1]
        both = jnp.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], axis + 1)
        return both.reshape([2 * e if a == axis else e for a, e in enumerate(x.shape)])

    return along(along(x, 2), 3)


def _backward(_, h):
    """Each place gathers from the even and the odd result of its own, and from one of each neighbour."""

    def along(h, axis):
        n = h.shape[axis] // 2
        even, odd = (lax.slice_in_dim(h, r, 2 * n, 2, axis) for r in range(2))
        first, last = lax.slice_in_dim(even, 0, 1, axis=axis), lax.slice_in_dim(odd, n - 1, n, axis=axis)
        after = jnp.concatenate([lax.slice_in_dim(even, 1, n, axis=axis), last], axis)
        before = jnp.concatenate([first, lax.slice_in_dim(odd, 0, n - 1, axis=axis)], axis)
        return 0.75 * (even + odd) + 0.25 * (after + before)

    return (along(along(h, 3), 2),)


by_hand.defvjp(lambda x: (by_hand(x), None), _backward)


def torch(torch, x):
    return torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")

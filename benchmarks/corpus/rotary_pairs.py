"""y[b,t,j] = x[b,t,j] cos a[t,j//2] + (j even ? -x[b,t,j+1] : x[b,t,j-1]) sin a[t,j//2]: rotary positions of neighbours, with gradients of the angles"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "rotary positions, pairs of neighbours"
SIZES = {
    "full": dict(b=8, t=512, d=128),
    "quick": dict(b=2, t=32, d=16),
    "tiny": dict(b=1, t=3, d=4),
}
# cosines and sines are arrays before they are repeated; at 8 pairs these, which XLA computes at each element otherwise, are a third of all that is read
ABOVE = {"bytes": (2, "cosines and sines of the angles are arrays that are read twice")}


def inputs(b, t, d):
    return normal(b, t, d), normal(t, d // 2)


def expression(x, a):
    last = x.shape[2] - 1

    def element(b, t, j):
        other = te.select(j % 2 == 0, -x[b, t, te.minimum(j + 1, last)], x[b, t, te.maximum(j - 1, 0)])
        return x[b, t, j] * te.cos(a[t, j // 2]) + other * te.sin(a[t, j // 2])

    return te.compute(x.shape, element, "y")


def idiomatic(x, a):
    even, odd, cos, sin = x[..., ::2], x[..., 1::2], jnp.cos(a), jnp.sin(a)
    return jnp.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1).reshape(x.shape)

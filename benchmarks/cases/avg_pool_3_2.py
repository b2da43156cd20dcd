"""y[n,c,i,j] = sum_pq x[n,c,2i+p-1,2j+q-1] / 9, p and q below 3, zero outside"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import windows
from forms.pooling import avg_pool
from harness.inputs import normal

TITLE = "average pool 3x3, stride 2"
SIZES = {"full": dict(n=16, c=32, h=56), "quick": dict(n=2, c=16, h=28), "tiny": dict(n=1, c=2, h=5)}
SPELLINGS = {"by hand": "slices along one axis after the other, adjoints by residue classes"}
HOLDS_BACK = "lax.reduce_window holds nothing; passes along one axis after the other hold what is between them, and are 2 to 80 times faster"


def inputs(n, c, h):
    return (normal(n, c, h, h),)


def expression(x):
    return te.ops.avg_pool2d(x, 3, strides=2, padding=1)


def idiomatic(x):
    pads = ((0, 0), (0, 0), (1, 1), (1, 1))
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 2, 2), pads) / 9


def indexed(x):
    return jnp.mean(windows(x, 3, stride=2, padding=1), (4, 5))


def by_hand(x):
    return avg_pool(x, 3, 2, 1)


def torch(torch, x):
    return torch.nn.functional.avg_pool2d(x, 3, 2, 1)

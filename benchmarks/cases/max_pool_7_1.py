"""y[n,c,i,j] = max_pq x[n,c,i+p-3,j+q-3], p and q below 7"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import windows
from forms.pooling import max_pool
from harness.inputs import normal

TITLE = "max-pool 7x7, stride 1"
SIZES = {"full": dict(n=16, c=32, h=56), "quick": dict(n=2, c=16, h=28), "tiny": dict(n=1, c=2, h=9)}
SPELLINGS = {"by hand": "slices along one axis after the other, adjoints by residue classes"}
HOLDS_BACK = "lax.reduce_window holds nothing; passes along one axis after the other hold what is between them, and are 2 to 80 times faster"


def inputs(n, c, h):
    return (normal(n, c, h, h),)


def expression(x):
    return te.ops.max_pool2d(x, 7, strides=1, padding=3)


def idiomatic(x):
    pads = ((0, 0), (0, 0), (3, 3), (3, 3))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 7, 7), (1, 1, 1, 1), pads)


def indexed(x):
    return jnp.max(windows(x, 7, padding=3, fill=-jnp.inf), (4, 5))


def by_hand(x):
    return max_pool(x, 7, 1, 3)


def torch(torch, x):
    return torch.nn.functional.max_pool2d(x, 7, 1, 3)

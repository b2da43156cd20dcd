"""y[n,o,i,j] = sum_cpq x[n,C*(o//O)+c,i+p-1,j+q-1] w[o,c,p,q], four groups of C inputs and O outputs"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import windows
from harness.inputs import normal

TITLE = "conv2d 3x3, 4 groups"
SIZES = {"full": dict(n=8, c=64, h=32), "quick": dict(n=2, c=32, h=16), "tiny": dict(n=1, c=8, h=4)}
HOLDS_BACK = "the groups of each operand apart, and their results before they are put together"
SPELLINGS = {"by hand": "one convolution a group, concatenated"}
GROUPS = 4


def inputs(n, c, h):
    return normal(n, c, h, h), normal(c, c // GROUPS, 3, 3, scale=0.1)


def expression(x, w):
    return te.ops.conv2d(x, w, padding=1, groups=GROUPS)


def convolution(x, w, groups):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", feature_group_count=groups, dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def idiomatic(x, w):
    return convolution(x, w, GROUPS)


def indexed(x, w):
    n, c, h, width = x.shape
    taps = windows(x, 3, padding=1).reshape(n, GROUPS, c // GROUPS, h, width, 3, 3)
    return jnp.einsum("ngcijpq,gocpq->ngoij", taps, w.reshape(GROUPS, -1, *w.shape[1:])).reshape(
        n, -1, h, width
    )


def by_hand(x, w):
    parts = zip(jnp.split(x, GROUPS, 1), jnp.split(w, GROUPS, 0), strict=True)
    return jnp.concatenate([convolution(a, b, 1) for a, b in parts], 1)


def torch(torch, x, w):
    return torch.nn.functional.conv2d(x, w, padding=1, groups=GROUPS)

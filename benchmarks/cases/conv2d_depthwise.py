"""y[n,c,i,j] = sum_pq x[n,c,i+p-1,j+q-1] w[c,p,q]"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.depthwise import depthwise
from forms.indices import windows
from harness.inputs import normal

TITLE = "depthwise conv2d 3x3"
SIZES = {"full": dict(n=8, c=64, h=32), "quick": dict(n=2, c=32, h=32), "tiny": dict(n=1, c=2, h=5)}
HOLDS_BACK = "the operand with zeros around it, once"


def inputs(n, c, h):
    return normal(n, c, h, h), normal(c, 3, 3)


def expression(x, w):
    p, q = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q")
    h, width = x.shape[2:]

    def body(n, c, i, j):
        y, z = i + p - 1, j + q - 1
        inside = (y >= 0) & (y < h) & (z >= 0) & (z < width)
        return te.sum(x[n, c, y, z] * w[c, p, q], axis=[p, q], where=inside)

    return te.compute(x.shape, body, "y")


def idiomatic(x, w):
    return lax.conv_general_dilated(
        x,
        w[:, None],
        (1, 1),
        "SAME",
        feature_group_count=x.shape[1],
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
    )


def indexed(x, w):
    return jnp.einsum("ncijpq,cpq->ncij", windows(x, 3, padding=1), w)


by_hand = depthwise


def torch(torch, x, w):
    return torch.nn.functional.conv2d(x, w[:, None], padding=1, groups=x.shape[1])

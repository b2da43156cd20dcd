"""y[n,o,i,j] = sum_cpq x[n,c,2i+p-1,2j+q-1] w[o,c,p,q]"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import windows
from harness.inputs import normal

TITLE = "conv2d 3x3, stride 2"
SIZES = {
    "full": dict(n=8, c=32, o=64, h=56),
    "quick": dict(n=2, c=32, o=32, h=28),
    "tiny": dict(n=1, c=2, o=3, h=5),
}


def inputs(n, c, o, h):
    return normal(n, c, h, h), normal(o, c, 3, 3, scale=0.1)


def expression(x, w):
    return te.ops.conv2d(x, w, strides=2, padding=1)


def idiomatic(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def indexed(x, w):
    return jnp.einsum("ncijpq,ocpq->noij", windows(x, 3, stride=2, padding=1), w)


def torch(torch, x, w):
    return torch.nn.functional.conv2d(x, w, stride=2, padding=1)

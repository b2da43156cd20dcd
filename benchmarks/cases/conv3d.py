"""y[n,o,d,i,j] = sum_crpq x[n,c,d+r-1,i+p-1,j+q-1] w[o,c,r,p,q]"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import places
from harness.inputs import normal

TITLE = "conv3d 3x3x3"
SIZES = {"full": dict(n=2, c=16, h=24), "quick": dict(n=1, c=8, h=12), "tiny": dict(n=1, c=2, h=3)}
HOLDS_BACK = "the images once for each tap of one dimension, for a convolution of two dimensions that takes a sixth of the time"


def inputs(n, c, h):
    return normal(n, c, h, h, h), normal(c, c, 3, 3, 3, scale=0.1)


def expression(x, w):
    return te.ops.conv3d(x, w, padding=1)


def idiomatic(x, w):
    return lax.conv_general_dilated(x, w, (1, 1, 1), "SAME", dimension_numbers=("NCDHW", "OIDHW", "NCDHW"))


def indexed(x, w):
    x = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1), (1, 1)))
    d, i, j = (places(length, 3) for length in x.shape[2:])
    taps = x[:, :, d[:, None, None, :, None, None], i[:, None, None, :, None], j[:, None, None]]
    return jnp.einsum("ncdijrpq,ocrpq->nodij", taps, w)


def torch(torch, x, w):
    return torch.nn.functional.conv3d(x, w, padding=1)

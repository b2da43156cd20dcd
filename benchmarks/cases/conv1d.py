"""y[b,t,o] = sum_kc x[b,t+k,c] w[k,c,o]"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "conv1d, 7 taps"
SIZES = {"full": dict(b=8, t=512, c=32), "quick": dict(b=4, t=256, c=16), "tiny": dict(b=2, t=9, c=2)}


def inputs(b, t, c):
    return normal(b, t, c), normal(7, c, c, scale=0.1)


def expression(x, w):
    k, c = te.reduce_axis((0, w.shape[0]), "k"), te.reduce_axis((0, w.shape[1]), "c")
    shape = (x.shape[0], x.shape[1] - w.shape[0] + 1, w.shape[2])
    return te.compute(shape, lambda b, t, o: te.sum(x[b, t + k, c] * w[k, c, o], axis=[k, c]), "y")


def idiomatic(x, w):
    return lax.conv_general_dilated(x, w, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"))


def indexed(x, w):
    at = jnp.arange(x.shape[1] - w.shape[0] + 1)[:, None] + jnp.arange(w.shape[0])
    return jnp.einsum("btkc,kco->bto", x[:, at], w)


def torch(torch, x, w):
    return torch.nn.functional.conv1d(x.transpose(1, 2), w.permute(2, 1, 0)).transpose(1, 2)

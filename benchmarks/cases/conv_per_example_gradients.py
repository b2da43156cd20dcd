"""g[n,o,c,p,q] = sum_ij h[n,o,i,j] x[n,c,i+p,j+q], the weight gradient of a convolution for each example"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import windows
from harness.inputs import normal

TITLE = "per-example convolution gradients"
SIZES = {"full": dict(n=16, c=16, h=32), "quick": dict(n=4, c=8, h=16), "tiny": dict(n=2, c=2, h=5)}
HOLDS_BACK = "the groups of each operand apart, and their results before they are put together"


def inputs(n, c, h):
    return normal(n, c, h, h), normal(n, c, h - 2, h - 2)


def expression(x, h):
    i, j = te.reduce_axis((0, h.shape[2]), "i"), te.reduce_axis((0, h.shape[3]), "j")
    shape = (x.shape[0], h.shape[1], x.shape[1], 3, 3)
    return te.compute(
        shape, lambda n, o, c, p, q: te.sum(h[n, o, i, j] * x[n, c, i + p, j + q], axis=[i, j]), "g"
    )


def idiomatic(x, h):
    def convolution(w, x):
        return lax.conv_general_dilated(
            x[None], w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")
        )[0]

    w = jnp.zeros((h.shape[1], x.shape[1], 3, 3), x.dtype)
    return jax.vmap(lambda x, h: jax.vjp(lambda w: convolution(w, x), w)[1](h)[0])(x, h)


def indexed(x, h):
    return jnp.einsum("noij,ncijpq->nocpq", h, windows(x, 3))


def by_hand(x, h):
    rows, columns = h.shape[2:]
    taps = [x[:, :, p : p + rows, q : q + columns] for p in range(3) for q in range(3)]
    parts = [jnp.einsum("noij,ncij->noc", h, tap) for tap in taps]
    return jnp.stack(parts, -1).reshape(*parts[0].shape, 3, 3)

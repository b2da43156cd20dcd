"""y[i,j] = sum_uv k[u,v] x[i+u-r,j+v-r], x reflected at its edges: an image under a learned kernel of 15 x 15"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "a learned kernel of 15 x 15, reflected edges"
SIZES = {"full": dict(n=192, k=15), "quick": dict(n=40, k=15), "tiny": dict(n=6, k=3)}

ABOVE = {
    "flops": (2.2, "products of rows with bands of the kernel, half of which are zeros"),
    "bytes": (20.0, "rows are stacked for products in place of a convolution of one channel"),
    "temporaries": (25.0, "the same"),
}


def inputs(n, k):
    return normal(n, n), normal(k, k)


def expression(x, w):
    n, size = x.shape[0], w.shape[0]
    u, v = te.reduce_axis((0, size), "u"), te.reduce_axis((0, size), "v")

    def inside(i):
        return (n - 1) - te.abs((n - 1) - te.abs(i))

    return te.compute(
        (n, n),
        lambda i, j: te.sum(w[u, v] * x[inside(i + u - size // 2), inside(j + v - size // 2)], axis=(u, v)),
        "y",
    )


def idiomatic(x, w):
    padded = jnp.pad(x, w.shape[0] // 2, mode="reflect")
    return lax.conv_general_dilated(padded[None, None], w[None, None], (1, 1), "VALID")[0, 0]


def by_hand(x, w):
    padded = jnp.pad(x, w.shape[0] // 2, mode="reflect")
    product = jnp.fft.rfft2(padded) * jnp.conj(jnp.fft.rfft2(w, padded.shape))
    return jnp.fft.irfft2(product, padded.shape)[: x.shape[0], : x.shape[1]]

"""y[n,o,i,j] = sum_cpq x[n,c,(i+p-2)/2,(j+q-2)/2] w[o,c,p,q], where both are whole numbers inside x"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import windows
from harness.inputs import normal

TITLE = "transposed conv2d 4x4, stride 2"
SIZES = {"full": dict(n=8, c=32, h=32), "quick": dict(n=2, c=16, h=16), "tiny": dict(n=1, c=2, h=3)}
LAYOUT = ("NCHW", "OIHW", "NCHW")


def inputs(n, c, h):
    return normal(n, c, h, h), normal(c, c, 4, 4, scale=0.1)


def expression(x, w):
    n, channels, h, width = x.shape
    c = te.reduce_axis((0, channels), "c")
    p, q = te.reduce_axis((0, 4), "p"), te.reduce_axis((0, 4), "q")

    def body(n, o, i, j):
        y, z = i + p - 2, j + q - 2
        whole = (y % 2 == 0) & (z % 2 == 0)
        inside = (y >= 0) & (y < 2 * h) & (z >= 0) & (z < 2 * width)
        return te.sum(x[n, c, y // 2, z // 2] * w[o, c, p, q], axis=[c, p, q], where=whole & inside)

    return te.compute((n, w.shape[0], 2 * h, 2 * width), body, "y")


def idiomatic(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=LAYOUT)


def indexed(x, w):
    n, c, h, width = x.shape
    wide = jnp.zeros((n, c, 2 * h + 3, 2 * width + 3), x.dtype).at[:, :, 2:-1:2, 2:-1:2].set(x)
    return jnp.einsum("ncijpq,ocpq->noij", windows(wide, 4), w)


@jax.custom_vjp
def by_hand(x, w):
    """A small convolution for each residue class of the output; gradients as plain convolutions."""
    n, _c, h, width = x.shape
    rows = []
    for r in range(2):
        row = []
        for s in range(2):
            pads = ((1 - r, r), (1 - s, s))
            row.append(
                lax.conv_general_dilated(x, w[:, :, r::2, s::2], (1, 1), pads, dimension_numbers=LAYOUT)
            )
        rows.append(jnp.stack(row, -1))
    return jnp.stack(rows, 3).reshape(n, w.shape[0], 2 * h, 2 * width)


def _backward(saved, h):
    x, w = saved
    pads = ((1, 1), (1, 1))
    dx = lax.conv_general_dilated(
        h, w[:, :, ::-1, ::-1], (2, 2), pads, dimension_numbers=("NCHW", "IOHW", "NCHW")
    )
    dw = lax.conv_general_dilated(
        h, x, (1, 1), pads, rhs_dilation=(2, 2), dimension_numbers=("CNHW", "IOHW", "NCHW")
    )
    return dx, dw[:, :, ::-1, ::-1]


by_hand.defvjp(lambda x, w: (by_hand(x, w), (x, w)), _backward)


def torch(torch, x, w):
    return torch.nn.functional.conv_transpose2d(x, w.flip(2, 3).transpose(0, 1), stride=2, padding=1)

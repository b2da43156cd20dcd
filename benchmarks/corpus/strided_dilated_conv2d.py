"""y[n,i,j,o] = sum_pqc x[n, 2 i + 3 p - 3, 2 j + 3 q - 3, c] w[p,q,c,o] where inside: strided and dilated, odd sizes"""

from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "conv2d, stride 2, dilation 3, odd sizes"
SIZES = {
    "full": dict(n=4, h=63, w=57, ci=16, co=24),
    "quick": dict(n=2, h=15, w=13, ci=4, co=6),
    "tiny": dict(n=1, h=7, w=5, ci=2, co=2),
}


def inputs(n, h, w, ci, co):
    return normal(n, h, w, ci), normal(3, 3, ci, co, scale=0.1)


def expression(x, w):
    n, height, width, channels = x.shape
    p, q, c = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q"), te.reduce_axis((0, channels), "c")

    def element(b, i, j, o):
        y, z = 2 * i + 3 * p - 3, 2 * j + 3 * q - 3
        inside = (y >= 0) & (y < height) & (z >= 0) & (z < width)
        return te.sum(x[b, y, z, c] * w[p, q, c, o], axis=[p, q, c], where=inside)

    return te.compute((n, (height - 1) // 2 + 1, (width - 1) // 2 + 1, w.shape[3]), element, "y")


def idiomatic(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 2), [(3, 3)] * 2, rhs_dilation=(3, 3), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )

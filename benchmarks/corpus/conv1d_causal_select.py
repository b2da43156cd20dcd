"""y[b,i,o] = sum_kc x[b, i + 2 k - 2 (K - 1), c] w[k,c,o], where elements before the first are 0 by select: a dilated causal convolution"""

from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "dilated causal convolution, by select"
SIZES = {
    "full": dict(b=4, n=2048, c=64),
    "quick": dict(b=2, n=128, c=8),
    "tiny": dict(b=2, n=9, c=2),
}


def inputs(b, n, c):
    return normal(b, n, c), normal(2, c, c, scale=0.1)


def expression(x, w):
    taps = w.shape[0]
    k, c = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, w.shape[1]), "c")
    before = 2 * (taps - 1)

    def element(b, i, o):
        inside = i + 2 * k >= before
        element = te.select(inside, x[b, i + 2 * k - before, c], 0.0)
        return te.sum(element * w[k, c, o], axis=[k, c])

    return te.compute((x.shape[0], x.shape[1], w.shape[2]), element, "y")


def idiomatic(x, w):
    before = 2 * (w.shape[0] - 1)
    return lax.conv_general_dilated(
        x, w, (1,), [(before, 0)], rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")
    )

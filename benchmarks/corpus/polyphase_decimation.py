"""y[b,i] = sum_k w[k] x[b, 4 i + k]: a filter of 32 taps that keeps every fourth sample"""

from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "polyphase decimation"
SIZES = {
    "full": dict(b=16, n=65536),
    "quick": dict(b=2, n=256),
    "tiny": dict(b=1, n=40),
}
ABOVE = {
    "bytes": (2.4, "phases are slices that XLA counts each; the strided convolution takes six times as long"),
}


def inputs(b, n):
    return normal(b, n), normal(32)


def expression(x, w):
    b, n = x.shape
    k = te.reduce_axis((0, 32), "k")
    return te.compute((b, (n - 32) // 4 + 1), lambda b, i: te.sum(w[k] * x[b, 4 * i + k], axis=k), "y")


def idiomatic(x, w):
    return lax.conv_general_dilated(x[:, None], w[None, None], (4,), "VALID")[:, 0]

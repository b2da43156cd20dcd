"""det(S) - k tr(S)^2, S = sum over 5x5 of (Ix^2, Ix Iy, Iy^2), central differences: the response of corners"""

from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "Harris corners"
SIZES = {
    "full": dict(b=4, n=256),
    "quick": dict(b=1, n=32),
    "tiny": dict(b=1, n=8),
}
ABOVE = {
    "bytes": (2.6, "taps are slices that XLA counts each, and a window of 25 of them is one pass"),
}


def inputs(b, n):
    return (normal(b, n, n),)


def expression(x):
    b, n, m = x.shape
    shape = (b, n - 2, m - 2)
    dx = te.compute(shape, lambda b, i, j: 0.5 * (x[b, i + 2, j + 1] - x[b, i, j + 1]), "dx")
    dy = te.compute(shape, lambda b, i, j: 0.5 * (x[b, i + 1, j + 2] - x[b, i + 1, j]), "dy")
    k, q = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "q")

    def summed(u, v, name):
        return te.compute(
            (b, n - 6, m - 6),
            lambda b, i, j: te.sum(u[b, i + k, j + q] * v[b, i + k, j + q], axis=(k, q)),
            name,
        )

    xx, xy, yy = summed(dx, dx, "xx"), summed(dx, dy, "xy"), summed(dy, dy, "yy")

    def response(b, i, j):
        trace = xx[b, i, j] + yy[b, i, j]
        return xx[b, i, j] * yy[b, i, j] - xy[b, i, j] * xy[b, i, j] - 0.05 * trace * trace

    return te.compute(xx.shape, response, "r")


def idiomatic(x):
    dx, dy = 0.5 * (x[:, 2:, 1:-1] - x[:, :-2, 1:-1]), 0.5 * (x[:, 1:-1, 2:] - x[:, 1:-1, :-2])

    def summed(p):
        return lax.reduce_window(p, 0.0, lax.add, (1, 5, 5), (1, 1, 1), "VALID")

    xx, xy, yy = summed(dx * dx), summed(dx * dy), summed(dy * dy)
    return xx * yy - xy * xy - 0.05 * (xx + yy) ** 2

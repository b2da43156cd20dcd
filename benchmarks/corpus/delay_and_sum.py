"""y[b,t] = sum_m w[m] x[b, m, t + 3 m]: delay and sum over microphones"""

import jaxte as te
from harness.inputs import normal

TITLE = "delay and sum"
SIZES = {"full": dict(b=8, m=49, t=2048), "quick": dict(b=2, m=7, t=64), "tiny": dict(b=1, m=3, t=5)}


def inputs(b, m, t):
    return normal(b, m, t + 3 * m), normal(m)


def expression(x, w):
    b, nm, n = x.shape
    m = te.reduce_axis((0, nm), "m")
    return te.compute((b, n - 3 * nm), lambda b, t: te.sum(w[m] * x[b, m, t + 3 * m], axis=m), "y")


def idiomatic(x, w):
    _, nm, n = x.shape
    return sum(w[m] * x[:, m, 3 * m : 3 * m + n - 3 * nm] for m in range(nm))

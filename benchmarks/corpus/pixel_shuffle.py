"""y[b,c,i,j] = x[b, r r c + r (i % r) + j % r, i // r, j // r], times a gain for each channel"""

import jaxte as te
from harness.inputs import normal

TITLE = "pixel shuffle"
SIZES = {
    "full": dict(b=8, c=8, n=96),
    "quick": dict(b=2, c=2, n=12),
    "tiny": dict(b=1, c=1, n=2),
}
HOLDS_BACK = "the same program as the idiomatic form, by all counts: noise (0.7 to 1.2 from run to run)"


def inputs(b, c, n):
    return normal(b, 9 * c, n, n), normal(c)


def expression(x, gain):
    b, d, n, m = x.shape
    return te.compute(
        (b, d // 9, 3 * n, 3 * m),
        lambda b, c, i, j: gain[c] * x[b, 9 * c + 3 * (i % 3) + j % 3, i // 3, j // 3],
        "y",
    )


def idiomatic(x, gain):
    b, d, n, m = x.shape
    apart = x.reshape(b, d // 9, 3, 3, n, m).transpose(0, 1, 4, 2, 5, 3)
    return gain[:, None, None] * apart.reshape(b, d // 9, 3 * n, 3 * m)

"""r[i] = f[i + 1] - f[i], f a quotient of smoothness-weighted fluxes of u[i], ..., u[i + 4]: one WENO5 step"""

import jaxte as te
from harness.inputs import normal

TITLE = "WENO5 flux"
SIZES = {
    "full": dict(b=8, n=65536),
    "quick": dict(b=2, n=512),
    "tiny": dict(b=1, n=9),
}
TOLERANCE = 1e-3
ABOVE = {
    "bytes": (3.4, "what taps share is written and read, and copied where lines are short"),
    "temporaries": (2.0, "what taps share"),
}
HOLDS_BACK = (
    "what the taps share is computed once and kept: thirteen arrays, 268 MB read and written beside 96, in 26 loops beside 9 (0.70 to 0.97 in quiet runs); "
    "one array for the whole contribution of each tap would be five, but each would compute all of the weights again; ten arrays, where taps compute up to "
    "twelve operations again, take 0.85 of the time, and 5.7 times the multiplications of the definition, above the five that gradients are held to"
)


def inputs(b, n):
    return (normal(b, n),)


def flux(a, b, c, d, e):
    b0 = 13 / 12 * (a - 2 * b + c) ** 2 + 0.25 * (a - 4 * b + 3 * c) ** 2
    b1 = 13 / 12 * (b - 2 * c + d) ** 2 + 0.25 * (b - d) ** 2
    b2 = 13 / 12 * (c - 2 * d + e) ** 2 + 0.25 * (3 * c - 4 * d + e) ** 2
    w0, w1, w2 = 0.1 / (0.01 + b0) ** 2, 0.6 / (0.01 + b1) ** 2, 0.3 / (0.01 + b2) ** 2
    q0, q1, q2 = (2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6
    return (w0 * q0 + w1 * q1 + w2 * q2) / (w0 + w1 + w2)


def expression(u):
    batch, n = u.shape
    f = te.compute((batch, n - 4), lambda b, i: flux(*(u[b, i + t] for t in range(5))), "f")
    return te.compute((batch, n - 5), lambda b, i: f[b, i + 1] - f[b, i], "r")


def idiomatic(u):
    n = u.shape[1]
    f = flux(*(u[:, t : n - 4 + t] for t in range(5)))
    return f[:, 1:] - f[:, :-1]

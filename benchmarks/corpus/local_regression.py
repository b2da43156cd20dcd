"""f[i]: lines through y[j] at x[j], with weights exp(-2 (at[i] - x[j])^2), at at[i]"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "local linear regression"
SIZES = {"full": dict(m=500, n=2000), "quick": dict(m=48, n=128), "tiny": dict(m=3, n=4)}
HOLDS_BACK = "both sums read weights and differences as arrays, 1.4 times the bytes of plain JAX, whose transposes share them"
ABOVE = {"bytes": (1.95, "the slope of a weight is an array, which sums over rows and over columns read")}


def inputs(m, n):
    return normal(m), normal(n), normal(n)


def expression(at, x, y):
    m, n = at.shape[0], x.shape[0]
    j = te.reduce_axis((0, n), "j")

    def moment(f, name):
        return te.compute(
            (m,),
            lambda i: te.sum(te.exp(-2 * (at[i] - x[j]) ** 2) * f(x[j] - at[i]), axis=j),
            name,
        )

    s0, s1, s2 = (moment(f, f"s{n}") for n, f in enumerate((lambda d: 1.0, lambda d: d, lambda d: d * d)))
    t0, t1 = moment(lambda d: y[j], "t0"), moment(lambda d: d * y[j], "t1")
    return te.compute(
        (m,), lambda i: (s2[i] * t0[i] - s1[i] * t1[i]) / (s0[i] * s2[i] - s1[i] ** 2 + 1e-3), "f"
    )


def idiomatic(at, x, y):
    d = x - at[:, None]
    w = jnp.exp(-2 * d**2)
    s0, s1, s2 = w.sum(1), (w * d).sum(1), (w * d * d).sum(1)
    return (s2 * (w @ y) - s1 * ((w * d) @ y)) / (s0 * s2 - s1**2 + 1e-3)

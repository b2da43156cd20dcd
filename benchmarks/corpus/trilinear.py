"""y[b,n] = sum_klm wx wy wz v[b, ix + k, iy + l, iz + m]: trilinear samples of a volume"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal, uniform

TITLE = "trilinear samples"
SIZES = {
    "full": dict(b=8, n=48, p=20000),
    "quick": dict(b=2, n=12, p=300),
    "tiny": dict(b=1, n=3, p=4),
}

ABOVE = {"gather": (2.0, "corners are gathered again in the backward pass")}


def inputs(b, n, p):
    return normal(b, n, n, n), integers(b, p, 3, below=n - 1), uniform(b, p, 3)


def expression(v, at, f):
    taps = [te.reduce_axis((0, 2), name) for name in "klm"]

    def element(b, p):
        weight = 1.0
        for d, tap in enumerate(taps):
            weight = weight * te.select(tap == 0, 1 - f[b, p, d], f[b, p, d])
        corner = v[b, at[b, p, 0] + taps[0], at[b, p, 1] + taps[1], at[b, p, 2] + taps[2]]
        return te.sum(weight * corner, axis=taps)

    return te.compute(at.shape[:2], element, "y")


def idiomatic(v, at, f):
    batch = jnp.arange(v.shape[0])[:, None]
    total = 0.0
    for corner in range(8):
        taps = [corner >> 2 & 1, corner >> 1 & 1, corner & 1]
        weight = 1.0
        for d, tap in enumerate(taps):
            weight = weight * (f[..., d] if tap else 1 - f[..., d])
        total = total + weight * v[batch, at[..., 0] + taps[0], at[..., 1] + taps[1], at[..., 2] + taps[2]]
    return total

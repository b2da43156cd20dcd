"""g[i,k] = sum_j exp(-e (|x_i - x_j| - r_k)^2) fc(|x_i - x_j|), fc = (cos(pi r / c) + 1) / 2 where r < c, j != i"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "radial features of atoms"
SIZES = {
    "full": dict(n=512, k=16),
    "quick": dict(n=32, k=4),
    "tiny": dict(n=4, k=2),
}
PI = 3.141592653589793
TOLERANCE = 1e-3


def inputs(n, k):
    return uniform(n, 3, high=8.0), uniform(k, high=4.0)


def expression(x, centre):
    n = x.shape[0]
    c, j = te.reduce_axis((0, 3), "c"), te.reduce_axis((0, n), "j")
    distance = te.compute(
        (n, n), lambda i, j: te.sqrt(te.sum((x[i, c] - x[j, c]) ** 2, axis=c) + 1e-6), "distance"
    )
    cutoff = te.compute(
        (n, n),
        lambda i, j: te.select(distance[i, j] < 4.0, 0.5 * te.cos(PI / 4.0 * distance[i, j]) + 0.5, 0.0),
        "cutoff",
    )

    def feature(i, k):
        near = te.exp(-2.0 * (distance[i, j] - centre[k]) ** 2)
        return te.sum(near * cutoff[i, j], axis=j, where=j != i)

    return te.compute((n, centre.shape[0]), feature, "g")


def idiomatic(x, centre):
    n = x.shape[0]
    r = jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, axis=-1) + 1e-6)
    cutoff = jnp.where((r < 4.0) & ~jnp.eye(n, dtype=bool), 0.5 * jnp.cos(PI / 4.0 * r) + 0.5, 0.0)
    return jnp.sum(jnp.exp(-2.0 * (r[..., None] - centre) ** 2) * cutoff[..., None], axis=1)

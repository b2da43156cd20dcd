"""r[i,j] = sum over the elements around a node and their corners of K[own, corner] k[element] u[corner]: bilinear elements"""

import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.inputs import given, normal, uniform

TITLE = "finite elements, bilinear, on a grid"
SIZES = {
    "full": dict(n=384),
    "quick": dict(n=16),
    "tiny": dict(n=4),
}
WITH_RESPECT_TO = (0, 1)
STIFFNESS = np.array([[4, -1, -1, -2], [-1, 4, -2, -1], [-1, -2, 4, -1], [-2, -1, -1, 4]], "float32") / 6
ABOVE = {
    "bytes": (2.0, "corners are slices that XLA counts each"),
}


def inputs(n):
    return normal(n + 1, n + 1), uniform(n, n, low=0.5), given(STIFFNESS)


def expression(u, k, stiffness):
    n, m = k.shape
    p, q, r, s = (te.reduce_axis((0, 2), name) for name in "pqrs")

    def residual(i, j):
        # the node (i, j) is corner (p, q) of the element (i - p, j - q)
        inside = (i - p >= 0) & (i - p < n) & (j - q >= 0) & (j - q < m)
        own = stiffness[2 * p + q, 2 * r + s] * k[i - p, j - q] * u[i - p + r, j - q + s]
        return te.sum(own, axis=(p, q, r, s), where=inside)

    return te.compute((n + 1, m + 1), residual, "r")


def idiomatic(u, k, stiffness):
    n, m = k.shape
    at = [u[r : r + n, s : s + m] for r in range(2) for s in range(2)]
    total = 0.0
    for own in range(4):
        force = k * sum(stiffness[own, corner] * at[corner] for corner in range(4))
        p, q = divmod(own, 2)
        total = total + jnp.pad(force, ((p, 1 - p), (q, 1 - q)))
    return total

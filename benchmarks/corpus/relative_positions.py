"""s[h,i,j] = sum_d q[h,i,d] k[h,j,d] + q[h,i,d] r[i - j + n - 1, d]: scores with relative positions"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "scores with relative positions"
SIZES = {
    "full": dict(h=8, n=512, d=64),
    "quick": dict(h=2, n=48, d=8),
    "tiny": dict(h=1, n=5, d=3),
}


def inputs(h, n, d):
    return normal(h, n, d), normal(h, n, d), normal(2 * n - 1, d)


def expression(q, k, r):
    h, n, size = q.shape
    d = te.reduce_axis((0, size), "d")

    def element(h, i, j):
        return te.sum(q[h, i, d] * (k[h, j, d] + r[i - j + n - 1, d]), axis=d)

    return te.compute((h, n, n), element, "s")


def idiomatic(q, k, r):
    h, n, _ = q.shape
    content = jnp.einsum("hid,hjd->hij", q, k)
    # rows of 2 n - 1 distances, the largest first, sheared into n columns by a reshape
    by_distance = jnp.einsum("hid,rd->hir", q, r[::-1])
    flat = jnp.pad(by_distance, ((0, 0), (0, 0), (0, 1))).reshape(h, 2 * n * n)
    sheared = flat[:, : n * (2 * n - 1)].reshape(h, n, 2 * n - 1)[:, :, n - 1 :]
    return content + sheared

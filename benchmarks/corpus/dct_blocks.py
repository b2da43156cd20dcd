"""y[b,8 i + u,8 j + v] = sum_pq C[u,p] C[v,q] x[b, 8 i + p, 8 j + q]: cosine transforms of blocks of 8x8"""

import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.inputs import given, normal

TITLE = "cosine transform of blocks"
SIZES = {
    "full": dict(b=8, n=512),
    "quick": dict(b=2, n=32),
    "tiny": dict(b=1, n=8),
}


def inputs(b, n):
    basis = np.cos(np.pi * (np.arange(8) + 0.5) * np.arange(8)[:, None] / 8)
    return normal(b, n, n), given(basis)


def expression(x, basis):
    p, q = te.reduce_axis((0, 8), "p"), te.reduce_axis((0, 8), "q")

    def element(b, i, j):
        own = x[b, i // 8 * 8 + p, j // 8 * 8 + q]
        return te.sum(basis[i % 8, p] * basis[j % 8, q] * own, axis=(p, q))

    return te.compute(x.shape, element, "y")


def idiomatic(x, basis):
    b, n, m = x.shape
    blocks = x.reshape(b, n // 8, 8, m // 8, 8)
    return jnp.einsum("up,vq,bipjq->biujv", basis, basis, blocks).reshape(b, n, m)

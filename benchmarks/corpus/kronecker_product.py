"""y[r,i] = sum_pq a[i // n, p] b[i % n, q] x[r, p m + q]: rows times the Kronecker product of two matrices, never made"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "Kronecker product of two matrices"
SIZES = {
    "full": dict(r=64, k=64),
    "quick": dict(r=8, k=16),
    "tiny": dict(r=2, k=3),
}
HOLDS_BACK = (
    "the same six products of matrices and the same bytes as JAX's; what differs is which operand is copied into the order that a "
    "product reads (0.1 ms)"
)


def inputs(r, k):
    return normal(k, k), normal(k, k), normal(r, k * k)


def expression(a, b, x):
    n, m = b.shape
    p, q = te.reduce_axis((0, a.shape[1]), "p"), te.reduce_axis((0, m), "q")

    def element(r, i):
        return te.sum(a[i // n, p] * b[i % n, q] * x[r, p * m + q], axis=(p, q))

    return te.compute((x.shape[0], a.shape[0] * n), element, "y")


def idiomatic(a, b, x):
    rows = x.reshape(-1, a.shape[1], b.shape[1])
    return jnp.einsum("ip,jq,rpq->rij", a, b, rows).reshape(x.shape[0], -1)

"""y[i,f] = sum_{e in row i} a[e] v[col[e],f] with a = softmax over the row of leaky_relu(left[i] + right[col[e]])

The edges are sorted by rows: row[e] is the row of edge e, as CSR's row pointers say.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te
from harness.inputs import given, normal

TITLE = "graph attention over CSR, 32 features"
SIZES = {
    "full": dict(n=4096, degree=16, d=32),
    "quick": dict(n=512, degree=8, d=32),
    "tiny": dict(n=6, degree=4, d=3),
}
SLOPE = 0.2


def inputs(n, degree, d):
    rng = np.random.default_rng(n)
    # a loop at every node, so that no row is empty
    row = np.sort(np.concatenate([np.arange(n), rng.integers(0, n, n * (degree - 1))]))
    return normal(n, d), normal(n), normal(n), given(row), given(rng.integers(0, n, len(row)))


def expression(v, left, right, row, col):
    te.assume(row, te.facts.sorted())
    n, edges = v.shape[0], row.shape[0]

    def edge(name):
        return te.reduce_axis((0, edges), name)

    s = te.compute((edges,), lambda e: te.leaky_relu(left[row[e]] + right[col[e]], SLOPE), "s")
    e = edge("e")
    m = te.compute((n,), lambda i: te.max(s[e], axis=e, where=row[e] == i), "m")
    w = te.compute((edges,), lambda e: te.exp(s[e] - m[row[e]]), "w")
    f = edge("e")
    total = te.compute((n,), lambda i: te.sum(w[f], axis=f, where=row[f] == i), "total")
    a = te.compute((edges,), lambda e: w[e] / total[row[e]], "a")
    g = edge("e")
    return te.compute(v.shape, lambda i, d: te.sum(a[g] * v[col[g], d], axis=g, where=row[g] == i), "y")


def idiomatic(v, left, right, row, col):
    n = len(v)
    s = jax.nn.leaky_relu(left[row] + right[col], SLOPE)
    w = jnp.exp(s - jax.ops.segment_max(s, row, n, indices_are_sorted=True)[row])
    a = w / jax.ops.segment_sum(w, row, n, indices_are_sorted=True)[row]
    return jax.ops.segment_sum(a[:, None] * v[col], row, n, indices_are_sorted=True)


def by_hand(v, left, right, row, col):
    """The sums of the numerator and of the denominator in one pass; the largest score is a constant to the gradient."""
    n = len(v)
    s = jax.nn.leaky_relu(left[row] + right[col], SLOPE)
    m = jax.lax.stop_gradient(jax.ops.segment_max(s, row, n, indices_are_sorted=True))
    w = jnp.exp(s - m[row])
    rows = jnp.concatenate([w[:, None] * v[col], w[:, None]], 1)
    sums = jax.ops.segment_sum(rows, row, n, indices_are_sorted=True)
    return sums[:, :-1] / sums[:, -1:]

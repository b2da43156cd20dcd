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
SPELLINGS = {
    "idiomatic": "jax.ops.segment_max and segment_sum",
    "by hand": "the gradient of the softmax from the outputs",
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


@jax.custom_vjp
def by_hand(v, left, right, row, col):
    return _forward(v, left, right, row, col)[0]


def _forward(v, left, right, row, col):
    n = len(v)
    s = left[row] + right[col]
    scores = jax.nn.leaky_relu(s, SLOPE)
    w = jnp.exp(scores - jax.ops.segment_max(scores, row, n, indices_are_sorted=True)[row])
    a = w / jax.ops.segment_sum(w, row, n, indices_are_sorted=True)[row]
    y = jax.ops.segment_sum(a[:, None] * v[col], row, n, indices_are_sorted=True)
    return y, (v, s, a, y, row, col)


def _backward(saved, h):
    """sum_e a[e] h[i].v[col[e]] over the row of an edge is h[i].y[i], so no sum over edges is needed for the softmax."""
    v, s, a, y, row, col = saved
    n, across = len(v), h[row]
    dv = jax.ops.segment_sum(a[:, None] * across, col, n)
    ds = a * (jnp.sum(across * v[col], 1) - jnp.sum(h * y, 1)[row]) * jnp.where(s >= 0, 1.0, SLOPE)
    dleft = jax.ops.segment_sum(ds, row, n, indices_are_sorted=True)
    return dv, dleft, jax.ops.segment_sum(ds, col, n), None, None


by_hand.defvjp(_forward, _backward)

"""y[i,j]: means of 5 x 5 colours around x[i,j], with weights by their distances in the image and in colour"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "bilateral filter of colours"
SIZES = {"full": dict(n=128), "quick": dict(n=24), "tiny": dict(n=7)}


def inputs(n):
    return (uniform(n, n, 3),)


def expression(x):
    n, m, nc = x.shape
    k, q, c = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "q"), te.reduce_axis((0, 3), "c")

    def weight(i, j):
        d2 = te.sum((x[i + k, j + q, c] - x[i + 2, j + 2, c]) ** 2, axis=c)
        return te.exp(-((k - 2) ** 2 + (q - 2) ** 2) / 4.0 - d2 / 0.1)

    total = te.compute((n - 4, m - 4), lambda i, j: te.sum(weight(i, j), axis=(k, q)), "total")
    return te.compute(
        (n - 4, m - 4, nc),
        lambda i, j, d: te.sum(weight(i, j) * x[i + k, j + q, d], axis=(k, q)) / total[i, j],
        "y",
    )


def idiomatic(x):
    n, m, _ = x.shape
    centre, top, total = x[2:-2, 2:-2], 0.0, 0.0
    for k in range(5):
        for q in range(5):
            v = x[k : k + n - 4, q : q + m - 4]
            near = ((k - 2) ** 2 + (q - 2) ** 2) / 4.0
            w = jnp.exp(-near - jnp.sum((v - centre) ** 2, -1, keepdims=True) / 0.1)
            top, total = top + w * v, total + w
    return top / total

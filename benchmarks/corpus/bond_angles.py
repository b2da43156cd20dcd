"""c[t] = a . b / sqrt(|a|^2 |b|^2 + eps) for a = p[t0] - p[t1], b = p[t2] - p[t1] of each triple: cosines of bond angles"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "bond angles"
SIZES = {
    "full": dict(p=900, t=30000),
    "quick": dict(p=20, t=60),
    "tiny": dict(p=4, t=5),
}
ABOVE = {
    "flops": (
        1.9,
        "the two parts that adjoints share, and the slopes beside them, are each computed of the coordinates",
    )
}


def inputs(p, t):
    return normal(p, 3), integers(t, 3, below=p)


def expression(p, triples):
    def bond(t, end):
        return [p[triples[t, end], c] - p[triples[t, 1], c] for c in range(3)]

    def element(t):
        a, b = bond(t, 0), bond(t, 2)
        dot = lambda u, v: u[0] * v[0] + u[1] * v[1] + u[2] * v[2]  # noqa: E731
        return dot(a, b) / te.sqrt(dot(a, a) * dot(b, b) + 1e-6)

    return te.compute((triples.shape[0],), element, "cosine")


def idiomatic(p, triples):
    a = p[triples[:, 0]] - p[triples[:, 1]]
    b = p[triples[:, 2]] - p[triples[:, 1]]
    return jnp.sum(a * b, -1) / jnp.sqrt(jnp.sum(a * a, -1) * jnp.sum(b * b, -1) + 1e-6)

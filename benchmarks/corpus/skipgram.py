"""l[i] = sum over j != i, |i - j| <= 5 of softplus(-sum_c u[i,c] v[j,c])"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "skip-grams, five on each side"
SIZES = {"full": dict(n=4096, c=64), "quick": dict(n=64, c=8), "tiny": dict(n=8, c=2)}

ABOVE = {
    "temporaries": (4.0, "the ten scores of each position are kept for the backward pass"),
}


def inputs(n, c):
    return normal(n, c, scale=0.2), normal(n, c, scale=0.2)


def expression(u, v):
    n, f = u.shape
    j, c = te.reduce_axis((0, n), "j"), te.reduce_axis((0, f), "c")

    def inside(i):
        return (j != i) & (te.abs(i - j) <= 5)

    return te.compute(
        (n,), lambda i: te.sum(te.softplus(-te.sum(u[i, c] * v[j, c], axis=c)), axis=j, where=inside(i)), "l"
    )


def idiomatic(u, v):
    n, total = u.shape[0], 0.0
    for d in [d for d in range(-5, 6) if d]:
        a, b = (u[: n - d], v[d:]) if d > 0 else (u[-d:], v[: n + d])
        s = jax.nn.softplus(-jnp.sum(a * b, axis=1))
        total = total + jnp.pad(s, (0, d) if d > 0 else (-d, 0))
    return total

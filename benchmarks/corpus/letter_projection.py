"""y[n,l,o] = sum_c e[seq[n,l], c] w[c,o]: letters of a short alphabet, embedded and projected"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import integers, normal

TITLE = "a short alphabet, embedded and projected"
SIZES = {
    "full": dict(n=32, t=512, a=21, c=64, o=64),
    "quick": dict(n=2, t=32, a=5, c=8, o=8),
    "tiny": dict(n=1, t=3, a=3, c=2, o=2),
}


def inputs(n, t, a, c, o):
    return normal(a, c), normal(c, o), integers(n, t, below=a)


def expression(e, w, seq):
    n, t = seq.shape
    c = te.reduce_axis((0, e.shape[1]), "c")
    return te.compute(
        (n, t, w.shape[1]), lambda n, t, o: te.tanh(te.sum(e[seq[n, t], c] * w[c, o], axis=c)), "y"
    )


def idiomatic(e, w, seq):
    return jnp.tanh(e[seq] @ w)


def by_hand(e, w, seq):
    return jnp.tanh(e @ w)[seq]

"""s[n,i,m] = sum_q p[m,q,seq[n,i+q]]: a score of each motif at each place of a sequence of few letters"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import integers, normal

TITLE = "scores of motifs along sequences of four letters"
SIZES = {
    "full": dict(n=16, t=1024, m=32, q=12, letters=4),
    "quick": dict(n=2, t=64, m=4, q=6, letters=4),
    "tiny": dict(n=1, t=6, m=2, q=3, letters=2),
}

ABOVE = {
    "gather": (
        12,
        "one for each place of a motif: a table may hold what is not finite, which no product may take",
    )
}


def inputs(n, t, m, q, letters):
    return normal(m, q, letters), integers(n, t, below=letters)


def expression(p, seq):
    n, t = seq.shape
    motifs, length, _ = p.shape
    q = te.reduce_axis((0, length), "q")
    return te.compute(
        (n, t - length + 1, motifs), lambda n, i, m: te.sum(p[m, q, seq[n, i + q]], axis=q), "s"
    )


def idiomatic(p, seq):
    length = p.shape[1]
    windows = jnp.arange(seq.shape[1] - length + 1)[:, None] + jnp.arange(length)
    return jnp.sum(p[:, jnp.arange(length), seq[:, windows]], axis=-1).transpose(1, 2, 0)


def by_hand(p, seq):
    letters = jax.nn.one_hot(seq, p.shape[2])
    return lax.conv_general_dilated(
        letters, p.transpose(1, 2, 0), (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
    )

"""y[i,j] = x[at[i],j] for a permutation at, whose inverse is given too"""

import jax
import numpy as np

import jaxte as te
from harness.inputs import given, normal

TITLE = "gather with a permutation"
SIZES = {"full": dict(n=20_000, d=64), "quick": dict(n=4_000, d=64), "tiny": dict(n=5, d=3)}
SPELLINGS = {"by hand": "backward, a gather by the inverse permutation"}


def inputs(n, d):
    at = np.random.default_rng(n).permutation(n)
    return normal(n, d), given(at), given(np.argsort(at))


def expression(x, at, inverse):
    te.assume(at, te.facts.permutation(inverse=inverse))
    return te.compute(x.shape, lambda i, j: x[at[i], j], "y")


def idiomatic(x, at, inverse):
    return x[at]


@jax.custom_vjp
def by_hand(x, at, inverse):
    return x[at]


by_hand.defvjp(lambda x, at, inverse: (x[at], inverse), lambda inverse, h: (h[inverse], None, None))


def torch(torch, x, at, inverse):
    return x[at]

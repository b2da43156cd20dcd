"""y[b,t] = sum_{s <= t} (1 - a) a^(t - s) x[b,s]: an exponential moving average, one sum"""

import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "exponential moving average"
SIZES = {
    "full": dict(b=48, n=700),
    "quick": dict(b=4, n=30),
    "tiny": dict(b=1, n=5),
}
A = 0.9
HOLDS_BACK = "what flows back is multiplied and turned in one loop, which takes twice as long as to turn it alone; in the idiomatic form the loop multiplies"


def inputs(b, n):
    return (normal(b, n),)


def expression(x):
    s = te.reduce_axis((0, x.shape[1]), "s")

    def element(b, t):
        return te.sum((1 - A) * A ** (t - s) * x[b, s], axis=s, where=s <= t)

    return te.compute(x.shape, element, "y")


def idiomatic(x):
    def step(carry, new):
        carry = A * carry + (1 - A) * new
        return carry, carry

    return lax.scan(step, jnp.zeros(x.shape[0]), x.T)[1].T

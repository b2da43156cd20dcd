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
ABOVE = {
    "flops": (
        12.0,
        "XLA counts one step of the idiomatic form's loop; a product with all pairs beside 700 steps",
    )
}
HOLDS_BACK = (
    "a product with a triangle of 700 x 700, made of one row of powers, beside a recurrence of 700 steps, which takes a thirtieth of the "
    "operations; sums with geometric weights are not recognised as recurrences"
)


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

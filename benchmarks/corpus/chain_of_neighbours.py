"""h' = w[s] tanh(h[i] + h[i - 1] / 2), 16 times, the first element beside itself: layers of a loop of Python"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "tanh of neighbours, 16 steps"
SIZES = {"full": dict(n=500), "quick": dict(n=60), "tiny": dict(n=5)}
ABOVE = {"while": (1.0, "steps of a loop of Python are one loop, compiled in a seventh of the time")}
STEPS = 16


def inputs(n):
    return normal(n), uniform(STEPS, low=0.5)


def expression(x, w):
    h = x
    for s in range(STEPS):
        h = te.compute(
            x.shape, lambda i, h=h, s=s: w[s] * te.tanh(h[i] + 0.5 * h[te.maximum(i - 1, 0)]), f"h{s + 1}"
        )
    return h


def _step(h, weight):
    return weight * jnp.tanh(h + 0.5 * jnp.concatenate([h[:1], h[:-1]]))


def idiomatic(x, w):
    h = x
    for weight in w:
        h = _step(h, weight)
    return h


def by_hand(x, w):
    return jax.lax.scan(lambda h, weight: (_step(h, weight), None), x, w)[0]

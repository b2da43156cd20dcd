"""v = max(x, 0.99 (v[i] + v[i + 1]) / 2), 48 times, one node fewer each time: an option with early exercise, backwards through its lattice"""

import jax
import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "binomial lattice, 48 steps"
SIZES = {"full": dict(n=101), "quick": dict(n=52), "tiny": dict(n=50)}
ABOVE = {
    "while": (1.0, "steps of a loop of Python are one loop, compiled in a tenth of the time"),
}
STEPS, KEPT = 48, 0.495


def inputs(n):
    return (normal(n),)


def expression(x):
    (n,) = x.shape
    v = x
    for step in range(1, STEPS + 1):
        v = te.compute((n - step,), lambda i, v=v: te.maximum(KEPT * (v[i] + v[i + 1]), x[i]), f"v{step}")
    return v


def idiomatic(x):
    v = x
    for _ in range(STEPS):
        v = jnp.maximum(KEPT * (v[:-1] + v[1:]), x[: len(v) - 1])
    return v


def by_hand(x):
    """One loop over arrays as long as the first one, of which the end counts no more."""

    def step(v, _):
        return jnp.maximum(KEPT * (v + jnp.append(v[1:], 0.0)), x), None

    return jax.lax.scan(step, x, None, length=STEPS)[0][: len(x) - STEPS]

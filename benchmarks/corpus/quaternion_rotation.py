"""y = x + 2 w (u x x) + 2 u x (u x x) for unit quaternions (w, u): points turned, cross products by components"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal

TITLE = "rotation by quaternions"
SIZES = {
    "full": dict(n=200000),
    "quick": dict(n=300),
    "tiny": dict(n=3),
}


def inputs(n):
    return normal(n, 4), normal(n, 3)


def expression(q, x):
    def turned(n, c):
        def cross(a, k):
            return q[n, 1 + (k + 1) % 3] * a((k + 2) % 3) - q[n, 1 + (k + 2) % 3] * a((k + 1) % 3)

        once = lambda k: cross(lambda m: x[n, m], k)  # noqa: E731
        return x[n, c] + 2.0 * q[n, 0] * once(c) + 2.0 * cross(once, c)

    return te.compute(x.shape, turned, "y")


def idiomatic(q, x):
    u = q[:, 1:]
    once = jnp.cross(u, x)
    return x + 2.0 * q[:, :1] * once + 2.0 * jnp.cross(u, once)

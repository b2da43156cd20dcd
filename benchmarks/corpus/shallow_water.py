"""five steps of h' = h - dt div(h u), u' = u - dt g grad h, v' alike, on a periodic staggered grid"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import normal, uniform

TITLE = "shallow water, 5 steps"
SIZES = {
    "full": dict(n=256),
    "quick": dict(n=16),
    "tiny": dict(n=4),
}
STEPS, DT, G = 5, 0.05, 1.0


def inputs(n):
    return uniform(n, n, low=1.0, high=1.2), normal(n, n, scale=0.1), normal(n, n, scale=0.1)


def expression(h, u, v):
    n, m = h.shape
    for _ in range(STEPS):

        def velocity(i, j, h=h, u=u, v=v):
            east, north = h[(i + 1) % n, j] - h[i, j], h[i, (j + 1) % m] - h[i, j]
            return u[i, j] - DT * G * east, v[i, j] - DT * G * north

        u, v = te.compute((n, m), velocity, "uv")

        def height(i, j, h=h, u=u, v=v):
            right = 0.5 * (h[i, j] + h[(i + 1) % n, j]) * u[i, j]
            left = 0.5 * (h[(i - 1) % n, j] + h[i, j]) * u[(i - 1) % n, j]
            up = 0.5 * (h[i, j] + h[i, (j + 1) % m]) * v[i, j]
            down = 0.5 * (h[i, (j - 1) % m] + h[i, j]) * v[i, (j - 1) % m]
            return h[i, j] - DT * (right - left + up - down)

        h = te.compute((n, m), height, "h")
    return h, u, v


def idiomatic(h, u, v):
    for _ in range(STEPS):
        u = u - DT * G * (jnp.roll(h, -1, 0) - h)
        v = v - DT * G * (jnp.roll(h, -1, 1) - h)
        right = 0.5 * (h + jnp.roll(h, -1, 0)) * u
        up = 0.5 * (h + jnp.roll(h, -1, 1)) * v
        h = h - DT * (right - jnp.roll(right, 1, 0) + up - jnp.roll(up, 1, 1))
    return h, u, v

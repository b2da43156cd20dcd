"""Energies, distances, dynamics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from raised.registry import example


@example("physics", (512, 3), scale=4.0)
def lennard_jones(x):
    d = x[:, None] - x[None]
    r2 = (d**2).sum(-1) + jnp.eye(512) * 1e3 + 0.5
    s = 1 / r2**3
    return 0.5 * (4 * (s**2 - s)).sum()


@example("physics", (1024, 3), (1024, 3))
def chamfer(a, b):
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    return d.min(0).mean() + d.min(1).mean()


@example("physics", (4096, 3))
def polymer(x):
    bonds = x[1:] - x[:-1]
    length = jnp.sqrt((bonds**2).sum(-1) + 1e-6)
    cosine = (bonds[1:] * bonds[:-1]).sum(-1) / (length[1:] * length[:-1])
    return ((length - 1) ** 2).sum() + (1 - cosine).sum()


@example("physics", (256, 2), (256,))
def n_body(x, m):
    def force(x):
        d = x[None] - x[:, None]
        r = jnp.sqrt((d**2).sum(-1) + 0.01)
        return (m[None, :, None] * d / r[..., None] ** 3).sum(1)

    v = jnp.zeros_like(x)
    for _ in range(3):
        v = v + 0.01 * force(x)
        x = x + 0.01 * v
    return x


@example("physics", (128, 128, 3), scale=2.0)
def cloth(x):
    def spring(a, b):
        d = a - b
        return (jnp.sqrt((d**2).sum(-1) + 1e-6) - 1) ** 2

    return (
        spring(x[1:], x[:-1]).sum() + spring(x[:, 1:], x[:, :-1]).sum() + spring(x[1:, 1:], x[:-1, :-1]).sum()
    )


@example("physics", (256, 256))
def ising_energy(s):
    s = jnp.tanh(s)
    return -(s * jnp.roll(s, 1, 0) + s * jnp.roll(s, 1, 1)).sum()


@example("physics", (64, 3), (4096, 3))
def signed_distances(centres, points):
    d = jnp.sqrt(((points[:, None] - centres[None]) ** 2).sum(-1) + 1e-6) - 0.3
    return -jax.nn.logsumexp(-8 * d, axis=1) / 8


@example("physics", (64, 4), (8, 4))
def runge_kutta(x, a):
    def f(x):
        return jnp.tanh(x @ a[:4]) - x * a[4]

    def step(x, _):
        k1 = f(x)
        k2 = f(x + 0.05 * k1)
        k3 = f(x + 0.05 * k2)
        k4 = f(x + 0.1 * k3)
        return x + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return lax.scan(step, x, None, length=50)[0]

"""Ten steps of u'[i,j] = u[i,j] + 0.1 (u[i-1,j] + u[i+1,j] + u[i,j-1] + u[i,j+1] - 4 u[i,j]), indices modulo the size"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "5-point stencil, 10 steps, periodic"
SIZES = {"full": dict(n=512), "quick": dict(n=128), "tiny": dict(n=5)}
SPELLINGS = {
    "idiomatic": "jnp.roll, the steps written out",
    "indexed": "u[(i + 1) % n], the steps written out",
    "by hand": "the same step forward and backward, steps by lax.fori_loop",
}


def inputs(n):
    return (normal(n, n),)


def expression(u):
    n, m = u.shape
    for _ in range(10):

        def step(i, j, u=u):
            around = u[(i - 1) % n, j] + u[(i + 1) % n, j] + u[i, (j - 1) % m] + u[i, (j + 1) % m]
            return u[i, j] + 0.1 * (around - 4 * u[i, j])

        u = te.compute((n, m), step, "u")
    return u


def idiomatic(u):
    for _ in range(10):
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        u = u + 0.1 * (around - 4 * u)
    return u


def indexed(u):
    i, j = jnp.arange(u.shape[0]), jnp.arange(u.shape[1])

    for _ in range(10):
        around = u[(i - 1) % len(i)] + u[(i + 1) % len(i)] + u[:, (j - 1) % len(j)] + u[:, (j + 1) % len(j)]
        u = u + 0.1 * (around - 4 * u)
    return u


def wrapped_step(u):
    p = jnp.pad(u, 1, mode="wrap")
    return u + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)


# the stencil is symmetric, so a step is its own adjoint
step = jax.custom_vjp(wrapped_step)
step.defvjp(lambda u: (step(u), None), lambda _, h: (step(h),))


def by_hand(u):
    return lax.fori_loop(0, 10, lambda _, u: step(u), u)


def torch(torch, u):
    for _ in range(10):
        around = torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1)
        u = u + 0.1 * (around - 4 * u)
    return u

"""Ten steps of u'[i,j] = u[i,j] + 0.1 (u[i-1,j] + u[i+1,j] + u[i,j-1] + u[i,j+1] - 4 u[i,j]), zero outside"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from harness.inputs import normal

TITLE = "5-point stencil, 10 steps, zero outside"
SIZES = {"full": dict(n=512), "quick": dict(n=128), "tiny": dict(n=5)}
SPELLINGS = {
    "idiomatic": "jnp.pad and slices, the steps written out",
    "indexed": "p[i + 1, j] of the padded array, the steps written out",
    "by hand": "the same step forward and backward, steps by lax.fori_loop",
}


def inputs(n):
    return (normal(n, n),)


def expression(u):
    n, m = u.shape
    for _ in range(10):

        def step(i, j, u=u):
            above, below = te.select(i > 0, u[i - 1, j], 0.0), te.select(i < n - 1, u[i + 1, j], 0.0)
            left, right = te.select(j > 0, u[i, j - 1], 0.0), te.select(j < m - 1, u[i, j + 1], 0.0)
            return u[i, j] + 0.1 * (above + below + left + right - 4 * u[i, j])

        u = te.compute((n, m), step, "u")
    return u


def padded_step(u):
    p = jnp.pad(u, 1)
    return u + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)


def idiomatic(u):
    for _ in range(10):
        u = padded_step(u)
    return u


def indexed(u):
    i, j = jnp.arange(1, u.shape[0] + 1)[:, None], jnp.arange(1, u.shape[1] + 1)

    for _ in range(10):
        p = jnp.pad(u, 1)
        u = u + 0.1 * (p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1] - 4 * u)
    return u


# the stencil is symmetric, so a step is its own adjoint
step = jax.custom_vjp(padded_step)
step.defvjp(lambda u: (step(u), None), lambda _, h: (step(h),))


def by_hand(u):
    return lax.fori_loop(0, 10, lambda _, u: step(u), u)


def torch(torch, u):
    for _ in range(10):
        p = torch.nn.functional.pad(u, (1, 1, 1, 1))
        u = u + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)
    return u

"""Four steps of u'[i,j,k] = u[i,j,k] + 0.05 sum_r c[|r|] (u[i+r,j,k] + u[i,j+r,k] + u[i,j,k+r]), |r| up to 4, zero outside"""

import jax
import jax.numpy as jnp
from jax import lax

import jaxte as te
from forms.indices import places
from harness.inputs import normal

TITLE = "25-point stencil in 3-d, 4 steps"
SIZES = {"full": dict(n=64), "quick": dict(n=24), "tiny": dict(n=9)}
SPELLINGS = {
    "idiomatic": "jnp.pad and slices, the steps written out",
    "indexed": "nine places of each axis by jnp.take, the steps written out",
    "by hand": "the same step forward and backward, steps by lax.fori_loop",
}
STEPS, REACH = 4, 4
# second derivative of eighth order
COEFFICIENTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


def inputs(n):
    return (normal(n, n, n),)


def expression(u):
    for _ in range(STEPS):

        def step(*at, u=u):
            total = 3 * COEFFICIENTS[0] * u[at]
            for axis, i in enumerate(at):
                for r in range(1, REACH + 1):
                    before = te.select(i >= r, u[(*at[:axis], i - r, *at[axis + 1 :])], 0.0)
                    after = te.select(i < u.shape[axis] - r, u[(*at[:axis], i + r, *at[axis + 1 :])], 0.0)
                    total = total + COEFFICIENTS[r] * (before + after)
            return u[at] + 0.05 * total

        u = te.compute(u.shape, lambda i, j, k, step=step: step(i, j, k), "u")
    return u


def padded_step(u):
    p = jnp.pad(u, REACH)
    n, m, o = u.shape
    total = 3 * COEFFICIENTS[0] * u
    for r in range(-REACH, REACH + 1):
        if r:
            x = p[REACH + r : REACH + r + n, REACH:-REACH, REACH:-REACH]
            y = p[REACH:-REACH, REACH + r : REACH + r + m, REACH:-REACH]
            z = p[REACH:-REACH, REACH:-REACH, REACH + r : REACH + r + o]
            total = total + COEFFICIENTS[abs(r)] * (x + y + z)
    return u + 0.05 * total


def idiomatic(u):
    for _ in range(STEPS):
        u = padded_step(u)
    return u


def indexed(u):
    weights = jnp.asarray(COEFFICIENTS)[abs(jnp.arange(-REACH, REACH + 1))]

    def along(u, axis):
        p = jnp.pad(u, [(REACH, REACH) if a == axis else (0, 0) for a in range(3)])
        return jnp.tensordot(jnp.take(p, places(p.shape[axis], len(weights)), axis), weights, (axis + 1, 0))

    for _ in range(STEPS):
        u = u + 0.05 * sum(along(u, axis) for axis in range(3))
    return u


# the stencil is symmetric, so a step is its own adjoint
step = jax.custom_vjp(padded_step)
step.defvjp(lambda u: (step(u), None), lambda _, h: (step(h),))


def by_hand(u):
    return lax.fori_loop(0, STEPS, lambda _, u: step(u), u)

"""u' = u + dt (Du lap u - u v^2 + F (1 - u)), v' alike: a step of reaction and diffusion, periodic by two rolls an axis"""

import jax.numpy as jnp

import jaxte as te
from harness.inputs import uniform

TITLE = "Gray-Scott step"
SIZES = {
    "full": dict(n=768),
    "quick": dict(n=32),
    "tiny": dict(n=4),
}
DU, DV, F, K, DT = 0.16, 0.08, 0.035, 0.06, 1.0


def inputs(n):
    return uniform(n, n), uniform(n, n)


def expression(u, v):
    n, m = u.shape

    def laplacian(a, i, j):
        around = a[(i + 1) % n, j] + a[(i - 1) % n, j] + a[i, (j + 1) % m] + a[i, (j - 1) % m]
        return around - 4.0 * a[i, j]

    def step(i, j):
        reaction = u[i, j] * v[i, j] * v[i, j]
        new_u = u[i, j] + DT * (DU * laplacian(u, i, j) - reaction + F * (1.0 - u[i, j]))
        return new_u, v[i, j] + DT * (DV * laplacian(v, i, j) + reaction - (F + K) * v[i, j])

    new_u, new_v = te.compute(u.shape, step, "w")
    return te.compute((2, n, m), lambda c, i, j: te.select(c == 0, new_u[i, j], new_v[i, j]), "uv")


def idiomatic(u, v):
    def laplacian(a):
        return sum(jnp.roll(a, s, d) for s in (1, -1) for d in (0, 1)) - 4.0 * a

    reaction = u * v * v
    new_u = u + DT * (DU * laplacian(u) - reaction + F * (1.0 - u))
    return jnp.stack([new_u, v + DT * (DV * laplacian(v) + reaction - (F + K) * v)])

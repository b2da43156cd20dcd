"""Steps of simulations, and the energies and residuals of their states."""

# ruff: noqa: E731, E741
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from unseen.registry import case, normal, uniform


@case(uniform(9, 64, 64, low=0.05, high=0.15))
def lattice_boltzmann(f):
    c = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    w = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    for _ in range(3):
        f = jnp.stack([jnp.roll(f[i], (int(c[i, 0]), int(c[i, 1])), (0, 1)) for i in range(9)])
        rho = f.sum(0)
        u = jnp.einsum("id,ixy->dxy", jnp.asarray(c, "float32"), f) / rho
        cu = jnp.einsum("id,dxy->ixy", jnp.asarray(c, "float32"), u)
        eq = w[:, None, None] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * jnp.sum(u**2, 0))
        f = f - (f - eq) / 0.8
    return jnp.sum(u**2)


@case(uniform(80, 80), uniform(80, 80), uniform(2, low=0.03, high=0.06))
def gray_scott(u, v, rates):
    feed, kill = rates
    lap = lambda a: jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a

    def step(_, s):
        u, v = s
        r = u * v * v
        return u + 0.16 * lap(u) - r + feed * (1 - u), v + 0.08 * lap(v) + r - (feed + kill) * v

    u, v = lax.fori_loop(0, 20, step, (u, v))
    return jnp.sum(v**2)


@case(uniform(100, 100, low=0.5, high=1.5), normal(40))
def yee_grid(eps, source):
    n = 100

    def step(s, pulse):
        e, hx, hy = s
        hx = hx.at[:, :-1].add(-0.5 * (e[:, 1:] - e[:, :-1]))
        hy = hy.at[:-1, :].add(0.5 * (e[1:, :] - e[:-1, :]))
        curl = hy[1:-1, 1:-1] - hy[:-2, 1:-1] - hx[1:-1, 1:-1] + hx[1:-1, :-2]
        e = e.at[1:-1, 1:-1].add(0.5 / eps[1:-1, 1:-1] * curl)
        e = e.at[n // 2, n // 2].add(pulse)
        return (e, hx, hy), e[n // 4, n // 4]

    z = jnp.zeros((n, n))
    return jnp.sum(lax.scan(step, (z, z, z), source)[1] ** 2)


@case(uniform(96, 96, low=1.0, high=1.2), normal(96, 96, scale=0.1), normal(96, 96, scale=0.1))
def shallow_water(h, hu, hv):
    def flux(h, hu, hv):
        u, v = hu / h, hv / h
        return (hu, hu * u + 4.9 * h * h, hu * v), (hv, hu * v, hv * v + 4.9 * h * h)

    for _ in range(3):
        fx, fy = flux(h, hu, hv)
        state = []
        for q, x, y in zip((h, hu, hv), fx, fy, strict=True):
            mean = (jnp.roll(q, 1, 0) + jnp.roll(q, -1, 0) + jnp.roll(q, 1, 1) + jnp.roll(q, -1, 1)) / 4
            state.append(
                mean
                - 0.01 * (jnp.roll(x, -1, 0) - jnp.roll(x, 1, 0))
                - 0.01 * (jnp.roll(y, -1, 1) - jnp.roll(y, 1, 1))
            )
        h, hu, hv = state
    return jnp.sum((h - 1) ** 2)


@case(normal(200, 3), normal(200, 3, scale=0.1), uniform(200))
def leapfrog_bodies(x, v, m):
    def force(x):
        d = x[None] - x[:, None]
        r3 = (jnp.sum(d**2, -1) + 0.01) ** -1.5
        return jnp.einsum("ij,ijk->ik", m[None] * r3, d)

    for _ in range(3):
        v = v + 0.005 * force(x)
        x = x + 0.01 * v
        v = v + 0.005 * force(x)
    return jnp.sum(m * jnp.sum(v**2, -1)) / 2


@case(normal(400, 2, scale=3.0), normal(400, 2))
def smoothed_particles(x, v):
    d = x[:, None] - x[None]
    q = jnp.sqrt(jnp.sum(d**2, -1) + 1e-8) / 0.8
    w = jnp.where(q < 1, 1 - 1.5 * q**2 + 0.75 * q**3, jnp.where(q < 2, 0.25 * (2 - q) ** 3, 0.0))
    rho = jnp.sum(w, 1)
    p = 5.0 * ((rho / 4) ** 3 - 1)
    visc = jnp.sum(w * jnp.sum((v[:, None] - v[None]) ** 2, -1) / (rho[:, None] + rho[None]))
    return jnp.sum(p**2) + 0.1 * visc


@case(normal(6000, scale=0.3))
def weno_flux(u):
    for _ in range(2):
        f = 0.5 * u**2
        a, b, c, d, e = (jnp.roll(f, s) for s in (2, 1, 0, -1, -2))
        p0, p1, p2 = (2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6
        b0 = 13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4
        b1 = 13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4
        b2 = 13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4
        w0, w1, w2 = 0.1 / (1e-6 + b0) ** 2, 0.6 / (1e-6 + b1) ** 2, 0.3 / (1e-6 + b2) ** 2
        flux = (w0 * p0 + w1 * p1 + w2 * p2) / (w0 + w1 + w2)
        u = u - 0.1 * (flux - jnp.roll(flux, 1))
    return jnp.sum(u**2)


@case(normal(128, 128), uniform(128, 128, low=0.5, high=2.0))
def jacobi_pressure(rhs, k):
    p = jnp.zeros_like(rhs)
    for _ in range(8):
        q = jnp.pad(p, 1, mode="edge")
        p = (q[:-2, 1:-1] + q[2:, 1:-1] + q[1:-1, :-2] + q[1:-1, 2:] - k * rhs) / 4
    return jnp.sum(p**2)


@case(normal(16, 16, 16, 3, scale=0.1), uniform(16, 16, 16))
def elastic_block(u, mu):
    grads = [jnp.stack(jnp.gradient(u[..., a]), -1) for a in range(3)]
    g = jnp.stack(grads, -2)
    e = 0.5 * (g + jnp.swapaxes(g, -1, -2) + jnp.einsum("...ki,...kj->...ij", g, g))
    trace = jnp.trace(e, axis1=-2, axis2=-1)
    return jnp.sum(mu * jnp.sum(e**2, (-1, -2)) + 0.5 * trace**2)


@case(normal(50, 50, 3), normal(50, 50, 3, scale=0.1))
def cloth_steps(x, v):
    def spring(a, b, rest):
        d = b - a
        l = jnp.sqrt(jnp.sum(d**2, -1, keepdims=True) + 1e-8)
        return 10 * (l - rest) * d / l

    def step(s, _):
        x, v = s
        f = jnp.zeros_like(x)
        s1, s2 = spring(x[:-1], x[1:], 1.0), spring(x[:, :-1], x[:, 1:], 1.0)
        f = f.at[:-1].add(s1).at[1:].add(-s1).at[:, :-1].add(s2).at[:, 1:].add(-s2)
        v = 0.99 * (v + 0.01 * f)
        return (x + 0.01 * v, v), None

    (x, v), _ = lax.scan(step, (x, v), None, length=15)
    return jnp.sum(x[-1] ** 2)


@case(normal(48, 48, scale=0.5))
def lattice_field(phi):
    for _ in range(4):
        near = sum(jnp.roll(phi, s, a) for a in (0, 1) for s in (1, -1))
        phi = jnp.tanh(0.4 * near + 0.3 * phi - 0.1 * phi**3)
    return jnp.mean(phi) ** 2 + jnp.sum(phi * jnp.roll(phi, 1, 0)) / phi.size

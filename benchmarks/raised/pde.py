"""Solvers of partial differential equations."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from raised.registry import example


def laplacian(u):
    return jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u


@example("PDE", (512, 512))
def heat(u):
    for _ in range(10):
        u = u + 0.1 * laplacian(u)
    return u


@example("PDE", (512, 512))
def heat_scan(u):
    def step(u, _):
        return u + 0.1 * laplacian(u), None

    return jax.lax.scan(step, u, None, length=10)[0]


@example("PDE", (256, 256), (256, 256))
def heat_variable_conductivity(u, k):
    for _ in range(4):
        flux_x = 0.5 * (k + jnp.roll(k, -1, 0)) * (jnp.roll(u, -1, 0) - u)
        flux_y = 0.5 * (k + jnp.roll(k, -1, 1)) * (jnp.roll(u, -1, 1) - u)
        u = u + 0.1 * (flux_x - jnp.roll(flux_x, 1, 0) + flux_y - jnp.roll(flux_y, 1, 1))
    return u


@example("PDE", (256, 256))
def heat_dirichlet(u):
    for _ in range(5):
        inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        u = u.at[1:-1, 1:-1].add(0.1 * inner)
    return u


@example("PDE", (256, 256))
def heat_neumann(u):
    for _ in range(5):
        p = jnp.pad(u, 1, mode="edge")
        u = u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)
    return u


@example("PDE", (256, 256), (256, 256))
def wave(u, v):
    for _ in range(5):
        p = jnp.pad(u, 1)
        lap = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u
        v = v + 0.1 * lap
        u = u + 0.1 * v
    return u


@example("PDE", (256, 256), (256, 256), scale=0.3)
def gray_scott(u, v):
    for _ in range(5):
        r = u * v * v
        u = u + 0.1 * laplacian(u) - r + 0.04 * (1 - u)
        v = v + 0.05 * laplacian(v) + r - 0.1 * v
    return u, v


@example("PDE", (256, 256), scale=0.3)
def cahn_hilliard(c):
    for _ in range(3):
        mu = c**3 - c - 0.5 * laplacian(c)
        c = c + 0.01 * laplacian(mu)
    return c


@example("PDE", (256, 256), scale=0.3)
def allen_cahn(u):
    for _ in range(6):
        u = u + 0.1 * (laplacian(u) + u - u**3)
    return u


@example("PDE", (65536,))
def burgers_upwind(u):
    for _ in range(5):
        left, right = jnp.roll(u, 1), jnp.roll(u, -1)
        u = u - 0.1 * jnp.where(u > 0, u * (u - left), u * (right - u)) + 0.05 * (left - 2 * u + right)
    return u


@example("PDE", (65536,))
def burgers_weno(u):
    """One step with fifth-order WENO reconstruction of the flux."""
    f = 0.5 * u**2
    fmm, fm, fp, fpp = jnp.roll(f, 2), jnp.roll(f, 1), jnp.roll(f, -1), jnp.roll(f, -2)
    q0 = (2 * fmm - 7 * fm + 11 * f) / 6
    q1 = (-fm + 5 * f + 2 * fp) / 6
    q2 = (2 * f + 5 * fp - fpp) / 6
    b0 = 13 / 12 * (fmm - 2 * fm + f) ** 2 + 0.25 * (fmm - 4 * fm + 3 * f) ** 2
    b1 = 13 / 12 * (fm - 2 * f + fp) ** 2 + 0.25 * (fm - fp) ** 2
    b2 = 13 / 12 * (f - 2 * fp + fpp) ** 2 + 0.25 * (3 * f - 4 * fp + fpp) ** 2
    a0, a1, a2 = 0.1 / (1e-6 + b0) ** 2, 0.6 / (1e-6 + b1) ** 2, 0.3 / (1e-6 + b2) ** 2
    flux = (a0 * q0 + a1 * q1 + a2 * q2) / (a0 + a1 + a2)
    return u - 0.1 * (flux - jnp.roll(flux, 1))


@example("PDE", (256, 256), (256, 256), (256, 256), scale=0.1)
def shallow_water(h, u, v):
    ddx = lambda a: 0.5 * (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0))  # noqa: E731
    ddy = lambda a: 0.5 * (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1))  # noqa: E731
    for _ in range(3):
        h, u, v = (
            h - 0.1 * (ddx((1 + h) * u) + ddy((1 + h) * v)),
            u - 0.1 * (u * ddx(u) + v * ddy(u) + ddx(h)),
            v - 0.1 * (u * ddx(v) + v * ddy(v) + ddy(h)),
        )
    return h, u, v


_DIRECTIONS = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)]
_WEIGHTS = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4


@example("PDE", (9, 128, 128), positive=True)
def lattice_boltzmann(f):
    c = jnp.array(_DIRECTIONS, jnp.float32)
    w = jnp.array(_WEIGHTS, jnp.float32)
    for _ in range(3):
        rho = f.sum(0)
        u = jnp.einsum("qd,qij->dij", c, f) / rho
        cu = jnp.einsum("qd,dij->qij", c, u)
        equilibrium = w[:, None, None] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (u**2).sum(0))
        f = f - 0.6 * (f - equilibrium)
        f = jnp.stack([jnp.roll(f[n], d, (0, 1)) for n, d in enumerate(_DIRECTIONS)])
    return f


@example("PDE", (128, 128), (128, 128), scale=0.3)
def navier_stokes_projection(u, v):
    ddx = lambda a: 0.5 * (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0))  # noqa: E731
    ddy = lambda a: 0.5 * (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1))  # noqa: E731
    u, v = (
        u + 0.1 * (0.1 * laplacian(u) - u * ddx(u) - v * ddy(u)),
        v + 0.1 * (0.1 * laplacian(v) - u * ddx(v) - v * ddy(v)),
    )
    divergence = ddx(u) + ddy(v)

    def jacobi(p, _):
        return (
            jnp.roll(p, 1, 0) + jnp.roll(p, -1, 0) + jnp.roll(p, 1, 1) + jnp.roll(p, -1, 1) - divergence
        ) / 4, None

    p, _ = jax.lax.scan(jacobi, jnp.zeros_like(u), None, length=20)
    return u - ddx(p), v - ddy(p)


@example("PDE", (131072,))
def advection_lax_wendroff(u):
    c = 0.4
    for _ in range(8):
        left, right = jnp.roll(u, 1), jnp.roll(u, -1)
        u = u - 0.5 * c * (right - left) + 0.5 * c**2 * (right - 2 * u + left)
    return u


@example("PDE", (48, 48, 48))
def diffusion_3d(u):
    for _ in range(4):
        p = jnp.pad(u, 1)
        u = u + 0.1 * (
            p[2:, 1:-1, 1:-1] + p[:-2, 1:-1, 1:-1] + p[1:-1, 2:, 1:-1] + p[1:-1, :-2, 1:-1]
            + p[1:-1, 1:-1, 2:] + p[1:-1, 1:-1, :-2] - 6 * u
        )  # fmt: skip
    return u


@example("PDE", (16384,), scale=0.1)
def kuramoto_sivashinsky(u):
    for _ in range(3):
        uxx = jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)
        uxxxx = jnp.roll(u, 2) - 4 * jnp.roll(u, 1) + 6 * u - 4 * jnp.roll(u, -1) + jnp.roll(u, -2)
        u = u - 0.01 * (u * 0.5 * (jnp.roll(u, -1) - jnp.roll(u, 1)) + uxx + uxxxx)
    return u


@example("PDE", (256, 256), (256, 256), scale=0.5)
def yee_tm(ez, hx):
    """Maxwell's equations on a staggered grid."""
    hy = jnp.zeros_like(hx)
    for _ in range(4):
        hx = hx.at[:, :-1].add(-0.5 * (ez[:, 1:] - ez[:, :-1]))
        hy = hy.at[:-1, :].add(0.5 * (ez[1:, :] - ez[:-1, :]))
        curl = hy[1:, 1:] - hy[:-1, 1:] - hx[1:, 1:] + hx[1:, :-1]
        ez = ez.at[1:, 1:].add(0.5 * curl)
    return ez


@example("PDE", (256, 256), (256, 256), (256, 256))
def maxwell_absorbing(ez, hx, hy):
    """Maxwell's equations with losses that grow towards two edges, whose values are repeated."""
    s = jnp.linspace(0, 1, 256) ** 2
    decay = jnp.exp(-0.1 * (s[:, None] + s[None]))
    for _ in range(4):
        hx = decay * (hx - 0.5 * jnp.diff(ez, axis=1, append=ez[:, -1:]))
        hy = decay * (hy + 0.5 * jnp.diff(ez, axis=0, append=ez[-1:]))
        curl = jnp.diff(hy, axis=0, prepend=hy[:1]) - jnp.diff(hx, axis=1, prepend=hx[:, :1])
        ez = decay * (ez + 0.5 * curl)
    return ez, hx, hy

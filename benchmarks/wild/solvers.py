"""Solvers through which a loss is differentiated: diffrax, optimistix, lineax and jaxopt."""

from __future__ import annotations

import diffrax
import jax
import jax.numpy as jnp
import jaxopt
import lineax
import optimistix

from wild.registry import Call, loss, normal


def solved(field: object, u: jax.Array, steps: int, **options: object) -> jax.Array:
    """The end of a solve with constant steps."""
    term = diffrax.ODETerm(field)
    return diffrax.diffeqsolve(
        term, diffrax.Tsit5(), 0.0, 0.05 * steps, 0.05, u, max_steps=steps + 1, **options
    ).ys


@loss("diffrax", "a heat equation on a circle")
def diffrax_heat() -> Call:
    def f(u):
        field = lambda t, u, args: jnp.roll(u, 1) + jnp.roll(u, -1) - 2 * u
        return jnp.sum(solved(field, u, 20) ** 2)

    return f, (normal(2000),)


@loss("diffrax", "reactions and diffusion in two dimensions")
def diffrax_reactions() -> Call:
    def laplacian(u):
        return sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u

    def f(u, rate):
        field = lambda t, u, args: laplacian(u) + rate * u * (1 - u**2)
        return jnp.sum(solved(field, u, 10) ** 2)

    return f, (normal(64, 64), jnp.float32(0.5))


@loss("diffrax", "a small network as a vector field")
def diffrax_network() -> Call:
    def f(w, v, u):
        field = lambda t, u, args: jnp.tanh(u @ w) @ v
        return jnp.sum(solved(field, u, 20) ** 2)

    return f, (normal(16, 32, scale=0.2), normal(32, 16, scale=0.2), normal(64, 16))


@loss("diffrax", "Lorenz's model of forty waves, differentiated directly")
def diffrax_lorenz() -> Call:
    def f(u):
        field = lambda t, u, args: (jnp.roll(u, -1) - jnp.roll(u, 2)) * jnp.roll(u, 1) - u + 8
        return jnp.sum(solved(field, u, 20, adjoint=diffrax.DirectAdjoint()) ** 2)

    return f, (normal(400),)


@loss("optimistix", "the root of a boundary value problem")
def optimistix_root() -> Call:
    def residual(u, force):
        p = jnp.pad(u, 1)
        return p[2:] - 2 * p[1:-1] + p[:-2] - 0.1 * jnp.sin(u) - force

    def f(force):
        found = optimistix.root_find(
            residual, optimistix.Newton(1e-4, 1e-4), jnp.zeros(100), args=force, max_steps=8, throw=False
        )
        return jnp.sum(found.value**2)

    return f, (normal(100, scale=0.01),)


@loss("lineax", "a tridiagonal solve")
def lineax_tridiagonal() -> Call:
    def f(diagonal, beside, right):
        own = lineax.TridiagonalLinearOperator(diagonal + 4, beside, beside)
        return jnp.sum(lineax.linear_solve(own, right, lineax.Tridiagonal()).value ** 2)

    return f, (normal(2000, scale=0.1), normal(1999, scale=0.1), normal(2000))


@loss("lineax", "conjugate gradients for a stencil")
def lineax_stencil() -> Call:
    def f(right):
        stencil = lambda u: 5 * u - sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1))
        own = lineax.FunctionLinearOperator(
            stencil, jax.eval_shape(lambda: right), lineax.positive_semidefinite_tag
        )
        return jnp.sum(lineax.linear_solve(own, right, lineax.CG(1e-4, 1e-4), throw=False).value ** 2)

    return f, (normal(48, 48),)


@loss("jaxopt", "steps of gradients of a smooth image, unrolled")
def jaxopt_unrolled() -> Call:
    def inner(x, weight, y):
        smooth = sum(jnp.sum(jnp.sqrt(jnp.diff(x, axis=a) ** 2 + 0.01)) for a in (0, 1))
        return jnp.sum((x - y) ** 2) + weight * smooth

    def f(weight, y):
        own = jaxopt.GradientDescent(inner, stepsize=0.05, acceleration=False)
        x, state = y, own.init_state(y, weight, y)
        for _ in range(5):
            x, state = own.update(x, state, weight, y)
        return jnp.sum(x**2)

    return f, (jnp.float32(0.1), normal(64, 64))


@loss("jaxopt", "a ridge regression by implicit derivatives")
def jaxopt_ridge() -> Call:
    def f(strength, x, y):
        own = jaxopt.GradientDescent(
            lambda w, s, x, y: jnp.mean((x @ w - y) ** 2) + s * jnp.sum(w**2), maxiter=20, implicit_diff=True
        )
        return jnp.sum(own.run(jnp.zeros(16), strength, x, y).params ** 2)

    return f, (jnp.float32(0.1), normal(200, 16), normal(200, seed=1))

"""Solvers of other packages on functions of te.function, beside the same solvers on plain JAX's form.

Stiff steps, Newton, Gauss-Newton and linear operators ask for forward mode, transposes and batches of a function that they know
nothing of. `make test-libraries` installs the packages; without them these tests are skipped.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

pytestmark = pytest.mark.filterwarnings("default")


@te.function
def heat(u):
    """Diffusion with a source that depends on the solution, on a ring."""
    n = u.shape[0]
    return te.compute((n,), lambda i: 20.0 * (u[(i - 1) % n] - 2 * u[i] + u[(i + 1) % n]) - u[i] ** 3, "du")


def heat_jax(u):
    return 20.0 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)) - u**3


@te.function
def residual(x, t, y):
    """Of the model ``a * exp(-b t) + c`` at the data."""
    return te.compute(t.shape, lambda i: x[0] * te.exp(-(x[1] * t[i])) + x[2] - y[i], "r")


def residual_jax(x, t, y):
    return x[0] * jnp.exp(-x[1] * t) + x[2] - y


def data():
    t = jnp.linspace(0.0, 3.0, 20)
    return t, 2.0 * jnp.exp(-1.3 * t) + 0.5


def start():
    return jnp.sin(jnp.linspace(0.0, 6.0, 12))


def close(found, expected) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), found, expected)


def test_diffrax_takes_implicit_steps_and_their_gradients() -> None:
    diffrax = pytest.importorskip("diffrax")

    def solved(f):
        def end(u):
            term = diffrax.ODETerm(lambda t, u, args: f(u))
            controller = diffrax.PIDController(rtol=1e-4, atol=1e-6)
            return diffrax.diffeqsolve(
                term, diffrax.Kvaerno3(), 0.0, 0.2, 0.01, u, stepsize_controller=controller
            ).ys[-1]

        return jax.jit(lambda u: (end(u), jax.grad(lambda u: jnp.sum(end(u) ** 2))(u)))(start())

    close(solved(heat), solved(heat_jax))


def test_optimistix_finds_roots_and_least_squares() -> None:
    optimistix = pytest.importorskip("optimistix")
    t, y = data()

    def solved(f, r):
        newton = optimistix.Newton(rtol=1e-5, atol=1e-6)
        step = lambda v, u: v - u - 0.01 * f(v)  # noqa: E731
        root = optimistix.root_find(step, newton, start(), start()).value
        levenberg = optimistix.LevenbergMarquardt(rtol=1e-5, atol=1e-6)
        fit = optimistix.least_squares(lambda x, _: r(x, t, y), levenberg, jnp.ones(3), max_steps=100).value
        through = jax.grad(lambda u: jnp.sum(optimistix.root_find(step, newton, u, u).value ** 2))(start())
        return root, fit, through

    found, expected = solved(heat, residual), solved(heat_jax, residual_jax)
    close(found, expected)
    np.testing.assert_allclose(found[1], [2.0, 1.3, 0.5], atol=1e-3)


def test_jaxopt_runs_gauss_newton_and_lbfgs() -> None:
    jaxopt = pytest.importorskip("jaxopt")
    t, y = data()

    def solved(r):
        fit = jaxopt.GaussNewton(residual_fun=r, maxiter=30).run(jnp.array([1.5, 1.0, 0.2]), t, y).params
        loss = lambda x: jnp.sum(r(x, t, y) ** 2)  # noqa: E731
        return fit, jaxopt.LBFGS(fun=loss, maxiter=60).run(jnp.ones(3)).params

    found = solved(residual)
    close(found, solved(residual_jax))
    np.testing.assert_allclose(found[0], [2.0, 1.3, 0.5], atol=1e-3)


def test_lineax_solves_with_jacobians_as_operators() -> None:
    lineax = pytest.importorskip("lineax")

    def solved(f):
        shifted = lambda u, args: u - 0.01 * f(u)  # noqa: E731
        operator = lineax.JacobianLinearOperator(shifted, start(), jac="fwd")
        vector = jnp.cos(start())
        by_steps = lineax.linear_solve(operator, vector, lineax.GMRES(rtol=1e-6, atol=1e-6)).value
        at_once = lineax.linear_solve(operator, vector, lineax.LU()).value
        return by_steps, at_once, operator.T.mv(vector), operator.as_matrix()

    close(solved(heat), solved(heat_jax))

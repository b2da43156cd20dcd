"""Edges that are set one after the other, step by step: what is read at several places is computed once, however many cheap tensors it goes through."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused


def mirrored(u):
    """A step of Jacobi's method, then each edge as the row beside it."""
    inner = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
    u = u.at[1:-1, 1:-1].set(inner)
    return u.at[0].set(u[1]).at[-1].set(u[-2]).at[:, 0].set(u[:, 1]).at[:, -1].set(u[:, -2])


def outflow(u):
    """An upwind step, with what leaves at two edges."""
    v = u.at[1:, 1:].add(-0.2 * (2 * u[1:, 1:] - u[:-1, 1:] - u[1:, :-1]) * u[1:, 1:])
    return v.at[-1].set(v[-2]).at[:, -1].set(2 * v[:, -2] - v[:, -3])


def coupled(u):
    """Two fields that pass through each other's products, both mirrored at the edges."""
    v = 0.1 * u * u
    return mirrored(u + 0.1 * v) - mirrored(v - 0.1 * u * v)


def walls(u):
    """Diffusion between walls of which one is reflecting, the other held."""
    u = u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * (1 + u[1:-1] ** 2))
    return u.at[0].set(0.0).at[-1].set(u[-2]).at[:, 0].set(0.5 * (u[:, 1] + u[:, 2]))


@pytest.mark.parametrize("step", [mirrored, outflow, coupled, walls])
def test_each_step_is_computed_once(step):
    def energy(u, steps=5):
        for _ in range(steps):
            u = step(u)
        return jnp.sum(u**2)

    u = jnp.asarray(np.random.default_rng(0).uniform(0.2, 1.0, (24, 24)), "float32")
    found = {}
    for name, function in (("te", te.adjoint(energy, everything=True)), ("jax", energy)):
        compiled = Fused(jax.jit(jax.value_and_grad(function)).lower(u))
        found[name] = compiled(u)[1], compiled.cost_analysis()["flops"]
    np.testing.assert_allclose(found["te"][0], found["jax"][0], rtol=1e-4, atol=1e-5)
    assert found["te"][1] <= 1.5 * found["jax"][1]

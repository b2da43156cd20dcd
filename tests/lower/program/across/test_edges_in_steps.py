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


def held(u, k):
    return u.at[1:-1, 1:-1].add(
        k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    )


def open_to_zeros(u, k):
    p = jnp.pad(u, 1)
    return u + k * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)


def stencil(u, k, keeps_edges):
    """The same written as elements."""

    def element(i, j):
        around = [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
        inside = [(a >= 0) & (a < 16) & (b >= 0) & (b < 16) for a, b in around]
        if keeps_edges:
            everywhere = (i >= 1) & (i < 15) & (j >= 1) & (j < 15)
            return te.select(everywhere, u[i, j] + k * sum(u[own] - u[i, j] for own in around), u[i, j])
        terms = [te.select(c, u[own], 0.0) for c, own in zip(inside, around, strict=True)]
        return u[i, j] + k * (sum(terms[1:], terms[0]) - 4.0 * u[i, j])

    return te.compute((16, 16), element, "h")


@pytest.mark.parametrize(("step", "keeps_edges"), [(held, True), (open_to_zeros, False)])
def test_what_flows_back_is_computed_once_where_its_terms_have_zeros_of_their_own(step, keeps_edges):
    """No array with zeros around it is left then, which would keep XLA from computing it again for each of the terms: 115 to 160 operations then."""

    @te.function
    def own(u, k):
        for _ in range(6):
            u = stencil(u, k[()], keeps_edges)
        return u

    def plain(u, k):
        for _ in range(6):
            u = step(u, k)
        return u

    u, k = jnp.asarray(np.random.default_rng(0).uniform(0.2, 1.0, (16, 16)), "float32"), jnp.float32(0.1)
    found = {}
    for name, function in (("te", own), ("jax", plain)):
        gradient = jax.value_and_grad(lambda u, k, f=function: jnp.sum(f(u, k) ** 2), argnums=(0, 1))
        compiled = Fused(jax.jit(gradient).lower(u, k))
        found[name] = compiled(u, k)[1], compiled.cost_analysis()["flops"]
    for ours, theirs in zip(found["te"][0], found["jax"][0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert found["te"][1] <= 60 * 6 * u.size  # an element and step, forward and backward

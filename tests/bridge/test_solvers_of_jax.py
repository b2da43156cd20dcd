"""What JAX builds around a function beside its own transformations: Taylor series by jet, implicit roots."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import jet

import jaxte as te


@te.function
def softmax(x: te.Tensor) -> te.Tensor:
    return te.ops.softmax(x)


@te.function
def running(x: te.Tensor) -> te.Tensor:
    return te.ops.cumsum(x, 0)


@te.function
def stencil(x: te.Tensor) -> te.Tensor:
    n = x.shape[0]
    return te.compute((n,), lambda i: te.sin(x[(i + 1) % n]) - 2 * x[i] + x[(i - 1) % n], "y")


def plain_stencil(x: Any) -> Any:
    return jnp.sin(jnp.roll(x, -1)) - 2 * x + jnp.roll(x, 1)


CASES = {
    "softmax": (softmax, lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x))),
    "running": (running, jnp.cumsum),
    "stencil": (stencil, plain_stencil),
}


@pytest.mark.parametrize("name", CASES)
def test_taylor_series(name: str, rng: np.random.Generator) -> None:
    own, plain = CASES[name]
    with jax.enable_x64(True):
        x, v, w = (jnp.asarray(rng.normal(size=8)) for _ in range(3))
        found, expected = (jet.jet(f, (x,), ((v, w, jnp.zeros(8)),)) for f in (own, plain))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@te.function
def pool(x: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, 2), "k")
    return te.compute((4,), lambda i: te.max(x[2 * i + k], axis=k), "y")


def plain_pool(x: Any) -> Any:
    return jnp.max(x.reshape(4, 2), 1)


def test_roots_around_a_pool(rng: np.random.Generator) -> None:
    def loss(a: Any, f: Any) -> Any:
        def equation(x: Any) -> Any:
            return x - a - 0.1 * jnp.repeat(f(x), 2)

        def solve(g: Any, x: Any) -> Any:
            for _ in range(25):
                x = x - g(x)
            return x

        def tangent(g: Any, y: Any) -> Any:
            return jnp.linalg.solve(jax.jacobian(g)(y), y)

        return jnp.sum(jax.lax.custom_root(equation, jnp.zeros(8), solve, tangent) ** 2)

    with jax.enable_x64(True):
        a = jnp.asarray(rng.normal(size=8))
        np.testing.assert_allclose(jax.grad(loss)(a, pool), jax.grad(loss)(a, plain_pool), rtol=1e-9)

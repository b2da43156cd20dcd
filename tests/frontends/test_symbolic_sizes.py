"""Raising where ``jax.export`` gives symbols for sizes: what has fixed sizes is raised, the rest is left as it is, and nothing is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def squares(x: Any) -> Any:
    return jnp.sum(x**2)


def heat(x: Any) -> Any:
    for _ in range(2):
        x = x + 0.1 * (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) - 2 * x)
    return jnp.sum(x**2)


def windows(x: Any) -> Any:
    return jnp.sum(jnp.sin(sum(x[k : x.shape[0] - 2 + k] for k in range(3))))


def stepped(x: Any) -> Any:
    w = jnp.cos(jnp.arange(36.0).reshape(6, 6))
    end, every = jax.lax.scan(lambda c, row: (jnp.tanh(c @ w + row), c[::2].sum()), x[0], x)
    return jnp.sum(end) + jnp.sum(every**2)


def pooled(x: Any) -> Any:
    top = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (1, 1), "VALID")
    return jnp.sum(jnp.where(top > 0, top, top**2) * jnp.cumsum(top, 1))


def checkpointed(x: Any) -> Any:
    inner = jax.checkpoint(lambda x: jnp.sin(x)[1:] * x[:-1])
    return jnp.sum(jax.jit(inner)(x))


def softmax(x: Any) -> Any:
    return jnp.sum(jax.nn.softmax(x, 0) ** 2) + jnp.max(x) * jnp.sum(x)


FUNCTIONS = [squares, heat, windows, stepped, pooled, checkpointed, softmax]


def exported(f: Callable[..., Any]) -> Any:
    (n,) = jax.export.symbolic_shape("n", constraints=["n >= 4"])
    return jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct((n, 6), "float32"))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_are_exported(f: Callable[..., Any], rng: np.random.Generator) -> None:
    default, every = exported(te.grad(f)), exported(jax.grad(te.adjoint(f, everything=True)))
    x = jnp.asarray(rng.normal(size=(7, 6)), "float32")
    for own in (default, every):
        np.testing.assert_allclose(own.call(x), jax.grad(f)(x), rtol=2e-5, atol=2e-5)


def test_a_part_of_fixed_sizes_is_raised() -> None:
    """The symbol is the number of rows; the weights, which are smoothed, have numbers for sizes."""

    def f(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ (jnp.roll(w, 1, 0) * w)))

    (n,) = jax.export.symbolic_shape("n")
    w, x = jax.ShapeDtypeStruct((6, 6), "float32"), jax.ShapeDtypeStruct((n, 6), "float32")
    every = te.adjoint(f, everything=True)
    found = te.explain(every, w, x)
    assert found.regions
    assert "a symbol of jax.export" in str(found)
    own = jax.export.export(jax.jit(jax.grad(every)))(w, x)
    args = jnp.cos(jnp.arange(36.0)).reshape(6, 6), jnp.sin(jnp.arange(18.0)).reshape(3, 6)
    np.testing.assert_allclose(own.call(*args), jax.grad(f)(*args), rtol=1e-4, atol=1e-4)

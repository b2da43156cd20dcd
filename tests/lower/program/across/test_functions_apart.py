"""Functions of arrays that are tiled, or that pieces side by side repeat, are computed before: XLA computes them for each element otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

ROWS, LENGTH, HALF = 3, 10, 8


def turned(x: te.Tensor, angles: te.Tensor) -> te.Tensor:
    """Rotary positions, halves by a choice."""

    def element(b: Any, t: Any, j: Any) -> Any:
        cos, sin = (f(angles[t, j % HALF]) for f in (te.cos, te.sin))
        other = x[b, t, (j + HALF) % (2 * HALF)]
        return te.select(j < HALF, x[b, t, j] * cos - other * sin, x[b, t, j] * cos + other * sin)

    return te.compute(x.shape, element, "y")


def weighted(x: te.Tensor, angles: te.Tensor) -> te.Tensor:
    """Weights of one period."""
    weights = te.compute(angles.shape, lambda t, j: te.cos(angles[t, j]), "weights")
    return te.compute(x.shape, lambda b, t, j: x[b, t, j] * weights[t, j % HALF], "y")


def halved(x: te.Tensor, angles: te.Tensor) -> te.Tensor:
    """Cheap weights are as well computed where they are read."""
    weights = te.compute(angles.shape, lambda t, j: 0.5 * angles[t, j], "weights")
    return te.compute(x.shape, lambda b, t, j: x[b, t, j] * weights[t, j % HALF], "y")


def turned_by_jax(x: Any, angles: Any) -> Any:
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    first, second = x[..., :HALF], x[..., HALF:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


CASES: dict[str, tuple[Callable[..., te.Tensor], Callable[..., Any], int]] = {
    "pieces side by side": (turned, turned_by_jax, 2),
    "tiles": (weighted, lambda x, a: x * jnp.tile(jnp.cos(a), (1, 2)), 1),
    "cheap": (halved, lambda x, a: x * jnp.tile(0.5 * a, (1, 2)), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_are_computed_before_they_are_repeated(name: str, rng: np.random.Generator) -> None:
    build, plain, apart = CASES[name]
    x = rng.standard_normal((ROWS, LENGTH, 2 * HALF)).astype("float32")
    angles = rng.standard_normal((LENGTH, HALF)).astype("float32")
    given = [te.placeholder(a.shape, name=n) for a, n in ((x, "x"), (angles, "angles"))]
    forward = te.source(build(*given)).split("def forward")[1]
    assert forward.count("_apart(jnp.") == apart == forward.count("jnp.cos") + forward.count("jnp.sin")
    fn = te.function(build)
    expected, pull = jax.vjp(plain, x, angles)
    found, own = jax.vjp(jax.jit(fn), x, angles)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for mine, theirs in zip(own(expected), pull(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)

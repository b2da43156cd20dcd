"""A step of a user's own loop, as tests of what is derived and lowered once take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

import jaxte as te

Step = Callable[[te.Tensor, int], te.Tensor]


def heat(u: te.Tensor, step: int) -> te.Tensor:
    """One step of the heat equation on a square that wraps around."""
    n = u.shape[0]

    def element(i: Any, j: Any) -> te.Expr:
        around = u[(i + 1) % n, j] + u[(i - 1) % n, j] + u[i, (j + 1) % n] + u[i, (j - 1) % n]
        return u[i, j] + 0.1 * (around - 4 * u[i, j])

    return te.compute(u.shape, element, "u")


def mixing(count: int) -> Callable[[Any, Any], Any]:
    """Steps that are written out: neighbours on a ring, and a shift with zeros."""

    def f(u: Any, k: Any) -> Any:
        for _ in range(count):
            u = (
                u
                + k * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 1) - 2 * u)
                + 0.1 * jnp.pad(u[1:], ((0, 1), (0, 0)))
            )
        return jnp.sum(u**2)

    return f

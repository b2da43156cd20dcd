"""Choices nested deeper than slopes are multiplied inside of: what is not taken contributes nothing there either, and the work stays linear."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxte as te


def steps(deep: int) -> Any:
    """``(k + 1) sin(x)`` up to the k-th of ``deep`` thresholds, of which the last one is 5; from there on ``sqrt(x - 5)``."""

    def element(x: Any) -> Any:
        value = te.sqrt(x - 5.0)
        for k in reversed(range(deep)):
            value = te.select(x <= 5.0 - 0.1 * (deep - 1 - k), te.sin(x) * (k + 1), value)
        return value

    return lambda x: te.compute(x.shape, lambda i: element(x[i]), "y")


def plain(deep: int, x: Any) -> Any:
    value = jnp.sqrt(jnp.where(x > 5.0, x - 5.0, 1.0))
    for k in reversed(range(deep)):
        value = jnp.where(x <= 5.0 - 0.1 * (deep - 1 - k), jnp.sin(x) * (k + 1), value)
    return value


def test_what_is_not_taken_contributes_nothing() -> None:
    deep = 14
    f = te.function(steps(deep))
    x, direction = (
        jnp.array([5.0, 4.0, 4.85, 6.0]),
        jnp.array([1.0, 2.0, 3.0, 4.0]),
    )  # the slope of the root is inf at 5
    expected = jax.grad(lambda x: plain(deep, x).sum())(x)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), expected, rtol=1e-4)
    np.testing.assert_allclose(jax.jvp(f, (x,), (direction,))[1], expected * direction, rtol=1e-4)


def test_the_text_grows_with_the_choices() -> None:
    def length(deep: int) -> int:
        x = te.placeholder((4,), name="x")
        return len(te.source(list(te.differentiate(steps(deep)(x), [x]))))

    assert length(60) < 3 * length(30)

"""Choices nested deeper than slopes are multiplied inside of: what is not taken contributes nothing there either, and the work stays linear."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


def moved(value: Any, how: str) -> Any:
    """``value`` by an operation whose slope is a number."""
    if how == "cast":
        own = isinstance(value, jax.Array)
        return (
            value.astype("float16").astype("float32")
            if own
            else te.cast(te.cast(value, "float16"), "float32")
        )
    return {"times": lambda: value * 0.9, "over": lambda: value / 1.3, "both": lambda: value * 0.9 / 1.2}[
        how
    ]()


@pytest.mark.parametrize("how", ["times", "over", "both", "cast"])
@pytest.mark.parametrize("levels", [1, 3])
def test_guards_are_seen_within_multiples_and_casts(levels: int, how: str) -> None:
    """An extremum leaves the logarithm of 0 out: the slope of that is no factor of nothing, however many extrema stand around it."""
    n = 12

    def element(x: te.Tensor, i: te.Axis) -> te.Expr:
        value = te.maximum(moved(te.log(x[i]), how), -5.0)
        for d in range(1, levels + 1):
            around = te.minimum(x[(i + d) % n], value + x[(i - d) % n])
            value = te.maximum(moved(value, how), around)
        return value

    def by_hand(x: Any) -> Any:
        value = jnp.maximum(moved(jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), -9.0), how), -5.0)
        for d in range(1, levels + 1):
            value = jnp.maximum(moved(value, how), jnp.minimum(jnp.roll(x, -d), value + jnp.roll(x, d)))
        return value

    f = te.function(lambda x: te.compute((n,), lambda i: element(x, i), "y"))
    x = (
        jnp.asarray(np.random.default_rng(0).uniform(0.2, 2.0, n).astype("float32"))
        .at[jnp.array([2, 7])]
        .set(0.0)
    )
    found, expected = (jax.grad(lambda x, g=g: jnp.sum(jnp.sin(g(x))))(x) for g in (f, by_hand))
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)

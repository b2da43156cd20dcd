"""Choices by a digit of a position: butterflies and the like are slices side by side, and so are their adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

B, N = 3, 48
Choice = Callable[[te.Tensor, Any, Any], Any]


def butterfly(x: te.Tensor, b: Any, i: Any) -> Any:
    return te.select((i >> 3) & 1 == 0, x[b, i] + x[b, i ^ 8], x[b, i ^ 8] - x[b, i])


def turned(x: te.Tensor, b: Any, i: Any) -> Any:
    """Pairs of blocks of four as real and imaginary parts, turned by an angle."""
    return te.select(i // 4 % 2 == 0, 0.8 * x[b, i] - 0.6 * x[b, i + 4], 0.6 * x[b, i - 4] + 0.8 * x[b, i])


def colours(x: te.Tensor, b: Any, i: Any) -> Any:
    """Three planes of four in each twelve: the differences of each plane from another one."""
    first, second = x[b, i], x[b, i // 12 * 12 + (i // 4 + 1) % 3 * 4 + i % 4]
    return te.select(i // 4 % 3 == 1, te.sin(first) * second, first - second)


def lifted(x: te.Tensor, b: Any, i: Any) -> Any:
    """A step of lifting: the second half of each block less what the first half predicts."""
    return te.select(i % 8 < 4, x[b, i], x[b, i] - 0.5 * x[b, te.maximum(i - 4, 0)])


def plain(name: str, x: jax.Array) -> jax.Array:
    i = np.arange(N)
    match name:
        case "butterfly":
            v = x.reshape(B, -1, 2, 8)
            return jnp.stack([v[:, :, 0] + v[:, :, 1], v[:, :, 0] - v[:, :, 1]], 2).reshape(B, N)
        case "turned":
            v = x.reshape(B, -1, 2, 4)
            a, b = v[:, :, 0], v[:, :, 1]
            return jnp.stack([0.8 * a - 0.6 * b, 0.6 * a + 0.8 * b], 2).reshape(B, N)
        case "colours":
            v = x.reshape(B, -1, 3, 4)
            w = jnp.roll(v, -1, 2)
            return jnp.where((np.arange(3) == 1)[:, None], jnp.sin(v) * w, v - w).reshape(B, N)
    return jnp.where(i % 8 < 4, x, x - 0.5 * x[:, np.maximum(i - 4, 0)])


CHOICES: dict[str, Choice] = {f.__name__: f for f in (butterfly, turned, colours, lifted)}
NAMES = pytest.mark.parametrize("name", CHOICES)


def function(name: str) -> te.Function:
    return te.function(lambda x: te.compute((B, N), lambda b, i: CHOICES[name](x, b, i), "y"))


@NAMES
def test_values_and_both_derivatives(name: str, rng: np.random.Generator) -> None:
    x, h = (jnp.asarray(rng.standard_normal((B, N)), "float32") for _ in range(2))
    own, wanted = function(name), lambda x: plain(name, x)
    for mine, theirs in (
        (own(x), wanted(x)),
        (jax.vjp(own, x)[1](h)[0], jax.vjp(wanted, x)[1](h)[0]),
        (jax.jvp(own, (x,), (h,))[1], jax.jvp(wanted, (x,), (h,))[1]),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["butterfly", "turned"])
def test_branches_are_computed_where_they_count(name: str) -> None:
    """Nothing is reversed, chosen from or filled with zeros in either pass."""
    text = te.source(function(name), jax.ShapeDtypeStruct((B, N), jnp.float32))
    assert "::-1" not in text and "jnp.where" not in text and "jnp.pad" not in text


def test_steps_of_a_transform_follow_each_other(rng: np.random.Generator) -> None:
    """Each step reads the digits of the step before it."""

    @te.function
    def walsh(x: te.Tensor) -> te.Tensor:
        for s in range(5):

            def step(b: Any, i: Any, x: te.Tensor = x, s: int = s) -> Any:
                other = x[b, i ^ (1 << s)]
                return te.select((i >> s) & 1 == 0, x[b, i] + other, other - x[b, i])

            x = te.compute(x.shape, step, f"x{s}")
        return x

    x = jnp.asarray(rng.standard_normal((2, 32)), "float32")
    bits = np.array([[bin(i & j).count("1") for j in range(32)] for i in range(32)])
    matrix = np.where(bits % 2, -1.0, 1.0)
    np.testing.assert_allclose(walsh(x), x @ matrix, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(walsh(x) ** 2))(x), 64 * x, rtol=1e-4, atol=1e-4)
    text = te.source(walsh, x)
    assert (
        text.count("jnp.where") == text.count("def ") - text.count("def _") == 2
    )  # by the remainder alone, once in each pass


def test_a_mask_by_a_digit_stays_a_mask() -> None:
    """Where each element is read at its own position nothing is gained."""
    fn = te.function(lambda x: te.compute((B, N), lambda b, i: te.select(i // 8 % 2 == 0, x[b, i], 0.0), "y"))
    assert "y_digits" not in te.source(fn, jax.ShapeDtypeStruct((B, N), jnp.float32))

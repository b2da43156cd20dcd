"""What exists stays as it is where what it was made of is computed again, and only some of that."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def later_column(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    """What a loop reads all of, a result reads one column of: the backward pass computes that column again, and keeps the loop."""
    n = x.shape[0]
    z = te.compute(x.shape, lambda t, c: te.sin(x[t, c] - g[c]), "z")
    h = te.recurrence(x.shape, lambda h, t, c: te.tanh(z[t, c] + h[t - 1, c] * g[c]), init=0.0)
    return te.compute((n,), lambda t: h[t, 0] * z[n - 1 - t, 1])


def in_pairs(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    n = x.shape[0]
    z = te.compute((n // 2, 2, x.shape[1]), lambda q, p, c: te.sin(x[2 * q + p, c] - g[c]), "z")
    h = te.recurrence(x.shape, lambda h, t, c: te.tanh(z[t // 2, t % 2, c] + h[t - 1, c] * g[c]), init=0.0)
    return te.compute((n,), lambda t: h[t, 0] * z[(n - 1 - t) // 2, (n - 1 - t) % 2, 1])


def first_row(x: te.Tensor, g: te.Tensor) -> te.Tensor:
    z = te.compute(x.shape, lambda t, c: te.exp(x[t, c] * g[c]), "z")
    h = te.recurrence(x.shape, lambda h, t, c: z[t, c] + te.sin(h[t + 1, c]), init=0.0, reverse=True)
    return te.compute(x.shape, lambda t, c: h[t, c] * z[2, 3 - c])


def in_jax(name: str, x: Any, g: Any) -> Any:
    z = jnp.exp(x * g) if name == "first_row" else jnp.sin(x - g)
    rows, last = [], jnp.zeros(x.shape[1])
    for t in range(len(x)) if name != "first_row" else range(len(x) - 1, -1, -1):
        last = z[t] + jnp.sin(last) if name == "first_row" else jnp.tanh(z[t] + last * g)
        rows.append(last)
    if name == "first_row":
        return jnp.stack(rows[::-1]) * z[2, ::-1]
    return jnp.stack(rows)[:, 0] * z[::-1, 1]


@pytest.mark.parametrize("build", (later_column, in_pairs, first_row))
def test_gradients_are_those_of_a_loop_in_jax(build: Any) -> None:
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(14, 4)).astype("float32"), rng.uniform(0.2, 0.8, 4).astype("float32")
    f = te.function(build)
    plain = lambda *a: in_jax(build.__name__, *a)  # noqa: E731
    head = rng.normal(size=plain(x, g).shape).astype("float32")
    for own, other in zip(jax.vjp(f, x, g)[1](head), jax.vjp(plain, x, g)[1](head), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)


def test_one_state_of_a_loop_is_kept_and_the_other_computed_again(x64: None) -> None:
    """The loop is run again for the one; what reads the other reads what exists."""
    steps, n = 17, 2

    def build(x: te.Tensor, b: te.Tensor) -> te.Tensor:
        def step(h: Any, g: Any, t: Any, i: Any) -> Any:
            return te.maximum(0.8 * h[t + 1, i], x[t, i]) + 0.1 * b[i], 0.5 * g[t + 1, i] + 0.3 * h[
                t + 1, i
            ] * b[i]

        h, g = te.recurrence((steps, n), step, init=(0.1, 0.2), reverse=True, dtype="float64")
        return te.compute((n,), lambda i: g[0, i] * b[i] + h[0, n - 1 - i])

    rng = np.random.default_rng(0)
    x, b, head = rng.normal(size=(steps, n)), rng.normal(size=n), rng.normal(size=n)
    few, whole = te.function(build, save=530), te.function(build)
    found = jax.jit(lambda *a: jax.vjp(few, *a)[1](head))(x, b)
    for own, other in zip(found, jax.vjp(whole, x, b)[1](head), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)

"""Slopes that are made of the value of a function read it where the tensor has it: as a branch of a choice, or negated."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor
from tests.agreement import interpreted

N = 12

CASES: dict[str, tuple[Callable[..., te.Expr], Callable[[jax.Array], jax.Array], str]] = {
    "masked": (
        lambda x, i, j: te.select(j <= i, te.exp(x[i, j]), 0.0),
        lambda x: jnp.where(jnp.tri(N, dtype=bool), jnp.exp(x), 0.0),
        "jnp.exp(",
    ),
    "held at both ends": (
        lambda x, i, j: te.select(j == 0, 0.0, te.select(j == N - 1, 1.0, te.sigmoid(x[i, j]))),
        lambda x: jax.nn.sigmoid(x).at[:, 0].set(0.0).at[:, -1].set(1.0),
        "jax.nn.sigmoid(",
    ),
    "of either kind": (
        lambda x, i, j: te.select(x[i, j] > 0, te.tanh(x[i, j]), -te.exp(-x[i, j])),
        lambda x: jnp.where(x > 0, jnp.tanh(x), -jnp.exp(-x)),
        "jnp.exp(",
    ),
    "negated": (lambda x, i, j: -te.tanh(x[i, j]), lambda x: -jnp.tanh(x), "jnp.tanh("),
}


def defined(element: Callable[..., te.Expr]) -> tuple[Tensor, Compute]:
    x = te.placeholder((N, N), name="x")
    return x, te.compute((N, N), lambda i, j: element(x, i, j), "y")  # type: ignore[return-value]


@pytest.mark.parametrize("name", CASES)
def test_the_function_is_computed_once(name: str, rng: np.random.Generator) -> None:
    element, plain, call = CASES[name]
    x, y = defined(element)
    head = te.placeholder(y.shape, name="head")
    (dx,) = te.differentiate(y, [x], head)
    feeds = {t: rng.normal(size=(N, N)).astype("float32") for t in (x, head)}
    expected, pull = jax.vjp(plain, feeds[x])
    np.testing.assert_allclose(interpreted(y, feeds), expected, rtol=1e-5)
    np.testing.assert_allclose(interpreted(dx, feeds), pull(feeds[head])[0], rtol=1e-5, atol=1e-6)
    assert te.source([y, dx]).count(call) == 1


def test_what_stands_elsewhere_as_well_is_computed() -> None:
    """``exp(x)`` is the element where it is chosen, and what is added to elsewhere."""
    x, y = defined(lambda x, i, j: te.select(j < i, te.exp(x[i, j]), te.exp(x[i, j]) * x[i, j]))
    (dx,) = te.differentiate(y, [x], te.placeholder(y.shape, name="head"))
    feeds = {t: np.full((N, N), 0.5, "float32") for t in (x, *dx.inputs) if not isinstance(t, Compute)}
    slope = interpreted(dx, feeds) / 0.5
    below = np.tri(N, k=-1, dtype=bool)
    np.testing.assert_allclose(slope, np.where(below, np.exp(0.5), 1.5 * np.exp(0.5)), rtol=1e-6)

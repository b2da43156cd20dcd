"""Tensors without axes stand in a body as they are; other whole tensors are refused with the element that was meant."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

U, W, A = te.placeholder((6,), name="u"), te.placeholder((6,), name="w"), te.placeholder((), name="a")
Body = Callable[[te.Axis], te.Expr]


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        (lambda i: U[i] * A, lambda u, a: u * a),
        (lambda i: te.exp(A) / (1 + U[i] ** 2), lambda u, a: jnp.exp(a) / (1 + u**2)),
        (lambda i: te.maximum(U[i], A) - A, lambda u, a: jnp.maximum(u, a) - a),
        (lambda i: te.select(U[i] > A, U[i], 2 * A), lambda u, a: jnp.where(u > a, u, 2 * a)),
        (lambda i: te.select(i > 2, A, 0.0) * U[i], lambda u, a: jnp.where(jnp.arange(6) > 2, a, 0.0) * u),
    ],
)
def test_as_they_are(body: Body, plain: Callable[..., jax.Array], rng: np.random.Generator) -> None:
    u, a = rng.normal(size=6).astype("float32"), np.float32(0.3)
    y = te.compute((6,), body, "y")
    np.testing.assert_allclose(te.interpret(y, {U: u, A: a}), plain(u, a), rtol=1e-6)
    found = jax.grad(lambda u, a: jnp.sum(te.function([U, A], y)(u, a) ** 2), (0, 1))(u, a)
    for own, expected in zip(
        found, jax.grad(lambda u, a: jnp.sum(plain(u, a) ** 2), (0, 1))(u, a), strict=True
    ):
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "body", [lambda i: U[i] * W, lambda i: W - U[i], lambda i: te.maximum(W, i), lambda i: U[i] > W]
)
def test_whole_tensors(body: Body) -> None:
    with pytest.raises(
        te.DefinitionError, match=r"is one element, and w \(6,\) a whole tensor; .* as in w\[i\]"
    ):
        te.compute((6,), body)

"""Slopes that are made of the value of a function read it where the tensor has it: as a branch of a choice, or negated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr
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


REPEATED: dict[str, Callable[..., Any]] = {
    "leaky": lambda f, q: f.select(q >= 0, q, 0.3 * q),
    "clipped at a share": lambda f, q: f.select(q > 0.5, 0.5 + 0.1 * q, q),
    "gate": lambda f, q: f.select(q > -1.0, q * q, -q),
    "negated": lambda f, q: f.select(q > 0.2, -(0.5 * -q), f.tanh(q)),
}
BRANCHES: dict[str, Callable[..., Any]] = {
    "quotient": lambda f, a, b: a / (1.5 + b * b),
    "exponential": lambda f, a, b: f.exp(a - b),
    "hyperbolic tangent": lambda f, a, b: f.tanh(a * b),
    "root": lambda f, a, b: f.sqrt(a * a + 1.0),
    "sigmoid": lambda f, a, b: 1.0 / (1.0 + f.exp(-a * b)),
}


class _OfArrays:
    """The functions of the cases, on arrays."""

    select, exp, tanh, sqrt = jnp.where, jnp.exp, jnp.tanh, jnp.sqrt


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("around", REPEATED)
def test_a_choice_that_is_used_again_does_not_have_the_value_of_the_whole(
    around: str, branch: str, rng: np.random.Generator
) -> None:
    """The branches of ``q`` in ``select(q >= 0, q, 0.3 * q)`` are worth ``q``, which is not the element where that is ``0.3 * q``."""
    x, z = (te.placeholder((N,), "float64", name) for name in "xz")

    def body(i: Axis) -> Expr:
        return REPEATED[around](te, te.select(i % 3 == 1, x[i], BRANCHES[branch](te, x[i], z[i])))

    def plain(x: jax.Array, z: jax.Array) -> jax.Array:
        q = jnp.where(jnp.arange(N) % 3 == 1, x, BRANCHES[branch](_OfArrays, x, z))
        return REPEATED[around](_OfArrays, q)

    y = te.compute((N,), body, "y")
    head = te.placeholder((N,), "float64", "head")
    feeds = {t: rng.normal(size=N) for t in (x, z, head)}
    with jax.enable_x64(True):
        _, pull = jax.vjp(plain, feeds[x], feeds[z])
        expected = pull(feeds[head])
    for adjoint, own in zip(te.differentiate(y, [x, z], head), expected, strict=True):
        np.testing.assert_allclose(interpreted(adjoint, feeds), own, rtol=1e-9, atol=1e-12)

"""``lax.while_loop`` with a bound under te.grad and te.adjoint, which JAX does not differentiate in reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

X = jnp.asarray([0.3, -1.2, 0.8, 1.1, -0.4, 2.0], jnp.float32)


def until(x: Any) -> Any:
    """Squares are added until they are more than 2."""
    begin = (0, jnp.float32(0))
    end = lax.while_loop(lambda s: (s[0] < 6) & (s[1] < 2), lambda s: (s[0] + 1, s[1] + x[s[0]] ** 2), begin)
    return end[1] ** 2


def until_scanned(x: Any) -> Any:
    return lax.scan(lambda s, own: (jnp.where(s < 2, s + own**2, s), None), jnp.float32(0), x)[0] ** 2


def bounded_by_data(x: Any) -> Any:
    """The length is data, of at most 6."""
    n = jnp.minimum((x > 0).sum(), 6)
    return lax.fori_loop(0, n, lambda i, s: s * 0.5 + x[i] ** 3, jnp.float32(1))


def bounded_by_data_scanned(x: Any) -> Any:
    n = (x > 0).sum()
    return lax.scan(
        lambda s, t: (jnp.where(t[0] < n, s * 0.5 + t[1] ** 3, s), None), jnp.float32(1), (jnp.arange(6), x)
    )[0]


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "until": (until, until_scanned),
    "by data": (bounded_by_data, bounded_by_data_scanned),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_a_scan(name: str) -> None:
    f, scanned = CASES[name]
    expected = jax.grad(scanned)(X)
    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.jit(jax.grad(f))(X)
    for gradient in (te.grad(f), jax.jit(jax.grad(te.adjoint(f))), jax.jit(te.grad(f))):
        np.testing.assert_allclose(gradient(X), expected, 1e-6, 1e-6)


def test_loops_that_nothing_flows_back_through_stay() -> None:
    def f(x: Any) -> Any:
        return until(lax.stop_gradient(x)) * x[0]

    text = str(jax.make_jaxpr(te.grad(f))(X))
    assert "while[" in text and "scan[" not in text
    np.testing.assert_allclose(te.grad(f)(X), jax.grad(f)(X), 1e-6)


@pytest.mark.parametrize("bound", ["n", "less"])
def test_without_a_bound_the_error_is_that_of_jax(bound: str) -> None:
    def f(x: Any, n: Any) -> Any:
        steps = lambda s: s[0] < n if bound == "n" else s[0] * 1.0 < 6  # noqa: E731
        return lax.while_loop(steps, lambda s: (s[0] + 1, s[1] * x[0]), (0, jnp.float32(1)))[1]

    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.jit(te.grad(f))(X, 4)

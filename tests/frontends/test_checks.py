"""Checks of whether numbers are finite, and choices that change no value, put in no guards; those that leave something out do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X = np.linspace(-2.0, 3.0, 12).astype("float32")
S = np.linspace(-0.5, 0.5, 4).astype("float32")
INF = jnp.inf


def is_finite(x: Any) -> Any:
    """As numpyro asks."""
    return (x == x) & (x != INF) & (x != -INF)


def density(x: Any, s: Any) -> Any:
    scale = jnp.exp(s)
    return -2.5 * jnp.log1p(((x[:, None] - 1.0) / scale) ** 2 / 4) - jnp.log(scale)


def each(x: Any, s: Any, check: Callable[[Any], Any] = is_finite, other: float = -INF) -> Any:
    return jnp.where(
        check(x), jax.nn.logsumexp(jnp.where(check(x)[:, None], density(x, s), other), -1), other
    )


def restored(p: Any) -> Any:
    return jnp.where(p == -INF, -INF, p)


UNGUARDED: dict[str, Callable[..., Any]] = {
    "numbers of a mixture": lambda x, s: -jnp.sum(each(x, s)),
    "by a function": lambda x, s: jnp.mean(each(x, s, jnp.isfinite)),
    "of magnitudes": lambda x, s: 2 * jnp.sum(each(x, s, lambda x: jnp.abs(x) < INF, INF)),
    "all at once": lambda x, s: jnp.where(jnp.all(is_finite(x)), jnp.sum(density(x, s)), -INF),
    "NaN is no density": lambda x, s: jnp.mean(jnp.where(jnp.isnan(q := density(x, s).sum(1)), -INF, q)),
    "neither NaN nor infinite": lambda x, s: jnp.sum(
        jnp.where(jnp.isnan(x) | jnp.isinf(x), INF, density(x, s)[:, 0])
    ),
    "a sum with another": lambda x, s: jnp.sum(each(x, s)) - jnp.sum(jnp.log(jnp.exp(s))),
    "what is put in its own place": lambda x, s: jnp.sum(jax.nn.logsumexp(restored(density(x, s)), -1)),
    "the other way": lambda x, s: jnp.sum(jnp.where(density(x, s) != INF, density(x, s), INF)),
}
GUARDED: dict[str, Callable[..., Any]] = {
    "NaN is no density of any": lambda x, s: jnp.sum(jnp.where(jnp.isnan(q := density(x, s)), 0.0, q)),
    "either of two": lambda x, s: jnp.sum(jnp.where(jnp.isfinite(x) | (x > 0), jnp.log(x), -INF)),
    "a number that is finite": lambda x, s: jnp.sum(each(x, s, other=0.0)),
    "a sum for each": lambda x, s: each(x, s),
    "a sum of what is finite": lambda x, s: jnp.sum(jnp.nan_to_num(each(x, s), neginf=0.0)),
    "a check of something else": lambda x, s: jnp.sum(each(x, s, lambda x: is_finite(x) & (x > 0))),
    "of which an exponential is taken": lambda x, s: jnp.sum(jnp.exp(each(x, s))),
    "another number in its place": lambda x, s: jnp.sum(jnp.where(density(x, s) == -INF, 0.0, density(x, s))),
    "a logarithm in its own place": lambda x, s: jax.nn.logsumexp(restored(jnp.log(jnp.abs(x)))),
}


@pytest.mark.parametrize("name", UNGUARDED)
def test_checks_put_in_no_guards(name: str) -> None:
    f = UNGUARDED[name]
    assert not te.explain(te.grad(f, (0, 1)), X, S).guarded
    for a, b in zip(te.grad(f, (0, 1))(X, S), jax.grad(f, (0, 1))(X, S), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", GUARDED)
def test_what_is_left_out_is_guarded(name: str) -> None:
    assert te.explain(te.adjoint(GUARDED[name]), X, S).guarded


def test_complex_numbers_are_compared_with_complex_ones() -> None:
    def energy(x: Any, s: Any) -> Any:
        z = x * (1 + 2j)
        return jnp.sum(jnp.real(jnp.where(z != 0j, jnp.log(jnp.where(z != 0j, z, 1)), z)) * jnp.sum(s))

    for a, b in zip(te.grad(energy, (0, 1))(X, S), jax.grad(energy, (0, 1))(X, S), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

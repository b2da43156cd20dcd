"""Slopes of ``exp(x - max(x))`` and of sums of it are finite: they cost no mask of rows, and rows that are not finite contribute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

HERE = np.random.default_rng(0).random((300, 40)) > 0.4
HERE[::7] = False
ROWS = HERE.any(1, keepdims=True)
LOGITS = np.random.default_rng(1).normal(size=HERE.shape).astype("float32")
ODD = np.where(ROWS, LOGITS, np.where(np.arange(300)[:, None] % 2, np.nan, np.inf)).astype("float32")
Safe = Callable[[Any, Any], Any]


def _shifted(x: Any) -> Any:
    return x - lax.stop_gradient(x.max(-1, keepdims=True))


def _by_hand(fill: float) -> Callable[[Any, Safe], Any]:
    def f(x: Any, safe: Safe) -> Any:
        i = _shifted(safe(ROWS, jnp.where(HERE, x, fill)))
        return jnp.sum(jnp.where(HERE, i - jnp.log(jnp.sum(jnp.exp(i), -1, keepdims=True)), 0) ** 2)

    return f


def _library(x: Any, safe: Safe) -> Any:
    here = HERE if safe is _as_it_is else HERE | ~ROWS
    return jnp.sum(jnp.where(HERE, jax.nn.log_softmax(x, where=here), 0.0) ** 2)


def _quotient(x: Any, safe: Safe) -> Any:
    e = jnp.exp(_shifted(safe(ROWS, x)))
    return jnp.sum(jnp.where(HERE, e / jnp.sum(e, -1, keepdims=True), 0.0) ** 2)


def _as_it_is(there: Any, x: Any) -> Any:
    return x


def _chosen(there: Any, x: Any) -> Any:
    return jnp.where(there, x, 0.5)


FUNCTIONS = {
    "finite number beside": (_by_hand(float(np.finfo("float32").min)), LOGITS),
    "minus infinity beside": (_by_hand(-np.inf), LOGITS),
    "rows that are not finite": (_quotient, ODD),
    "jax.nn.log_softmax": (_library, LOGITS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_two_choices_and_no_dearer_than_none(name: str) -> None:
    f, x = FUNCTIONS[name]
    ours = jax.jit(te.grad(lambda x: f(x, _as_it_is))).lower(x).compile()
    theirs = jax.jit(jax.grad(lambda x: f(x, _as_it_is))).lower(x).compile()
    expected = jax.grad(lambda x: f(x, _chosen))
    np.testing.assert_allclose(ours(x), expected(x), rtol=1e-4, atol=1e-5)
    costs = [
        {name: c.cost_analysis()[name] for name in ("transcendentals", "bytes accessed")}
        for c in (ours, theirs)
    ]
    assert costs[0]["transcendentals"] <= costs[1]["transcendentals"]
    assert costs[0]["bytes accessed"] <= 1.02 * costs[1]["bytes accessed"]
    assert "reduce_or" not in str(jax.make_jaxpr(te.grad(lambda x: f(x, _as_it_is)))(x))


def test_second_order() -> None:
    f = _by_hand(-np.inf)
    second = [
        jax.jit(jax.grad(lambda x, g=g, s=s: jnp.sum(g(lambda x: f(x, s))(x) ** 2)))(LOGITS)
        for g, s in ((te.grad, _as_it_is), (jax.grad, _chosen))
    ]
    np.testing.assert_allclose(*second, rtol=1e-3, atol=1e-4)


def _masked(number: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jnp.sum(jnp.where(jnp.eye(4) > 0, number(x), 0.0))


@pytest.mark.parametrize(
    "number",
    [
        lambda x: jnp.exp(x - jnp.max(x, 1)),  # a maximum of another row
        lambda x: jnp.exp(x - jnp.max(jnp.sin(x), 1, keepdims=True)),  # of another array
        lambda x: jnp.exp(jnp.max(x, 1, keepdims=True) - x),
        lambda x: jnp.exp(x - jnp.min(x, 1, keepdims=True)),
    ],
)
def test_what_has_no_bound_is_guarded(number: Callable[[Any], Any]) -> None:
    x = jnp.zeros((4, 4))
    assert te.explain(te.adjoint(_masked(number)), x).guarded
    assert "custom_jvp" not in str(jax.make_jaxpr(te.adjoint(_masked(number)))(x))


def test_a_value_that_is_another_slope_is_guarded() -> None:
    """Weights of rows of minus infinity multiply what they weigh: these have a value in place of NaN."""

    def f(x: Any, v: Any) -> Any:
        e = jnp.exp(_shifted(x))
        return jnp.sum(jnp.where(ROWS[:, 0], jnp.sum(e / jnp.sum(e, -1, keepdims=True) * v, -1), 0.0))

    x, v = jnp.where(HERE, LOGITS, -jnp.inf), jnp.asarray(LOGITS)
    found = te.grad(f, (0, 1))(x, v)
    expected = jax.grad(lambda x, v: f(jnp.where(ROWS, x, 0.5), v), (0, 1))(x, v)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-6)


def test_values_of_rows_that_are_needed_stay() -> None:
    def f(x: Any) -> Any:
        own = jnp.where(x > -jnp.inf, jax.nn.log_softmax(x), 1.0)
        return jnp.where(jnp.arange(3) < 2, own, jax.nn.log_softmax(x))

    x = jnp.full((2, 3), -jnp.inf)
    np.testing.assert_array_equal(te.adjoint(f)(x), f(x))

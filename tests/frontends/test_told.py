"""Slopes that are infinite or NaN only where NaN is made of the value anyway are not guarded: no selection is put in for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from tests.single_operations import run_by_xla

where = jnp.where
LOGITS = np.random.default_rng(0).normal(size=(6, 6)).astype("float32")
LINE = np.array([-3.0, -0.5, 0.0, 0.5, 0.9, 2.0, 30.0], "float32")
HERE = LINE > 0


def softmax(x: Any) -> Any:
    e = jnp.exp(x - lax.stop_gradient(x.max(-1, keepdims=True)))
    return e / e.sum(-1, keepdims=True)


def held(p: Any) -> Any:
    return where(p < 1e-3, 1e-3, p)


def forward(x: Any) -> Any:
    """Probabilities of states, of which those that are small are held in each turn."""

    def turn(state: Any, row: Any) -> Any:
        new = held(jnp.exp(-jnp.square(row)) * jnp.sum(state[:, None] * softmax(x), 0))
        total = jnp.sum(new)
        total = where(total == 0, 1.0, total)
        return new / total, jnp.log(total)

    start = jnp.ones(6) / 6
    return lax.scan(turn, start, LOGITS * 3)[1].sum()


def of_probabilities(choose: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jnp.sum(choose(softmax(x), x) ** 2)


def slopes_of_softplus(x: Any) -> Any:
    """Second derivatives of functions with a rule of their own, which leaves out what is infinite and has equal functions in both orders."""

    def first(x: Any) -> Any:
        return jax.grad(lambda y: jnp.sum(jax.nn.softplus(y)))(x)

    return jnp.sum(jax.jvp(first, (x,), (jnp.cos(x),))[1] ** 2)


def both_ways(x: Any) -> Any:
    """A function of which one branch takes a part, and a sum all."""
    return jnp.sum(where(x < 0.5, jnp.exp(x * 2), 0.0)) + jnp.sum(jnp.exp(x * 2) * 3)


NOT_GUARDED = {
    "what a rule says of infinity": (slopes_of_softplus, LINE),
    "one of two that are equal": (both_ways, LINE),
    "small probabilities are held": (lambda x: jnp.sum(held(softmax(x)) ** 2), LOGITS),
    "those of a sum": (lambda x: jnp.sum(jnp.log(held(softmax(x) @ jnp.ones(6) + softmax(x).sum(0)))), LOGITS),
    "not smaller": (of_probabilities(lambda p, x: where(~(p < 1e-3), p, 1.0)), LOGITS),
    "one of two comparisons": (of_probabilities(lambda p, x: where((p < 0.1) & (x > 0), 1.0, p)), LOGITS),
    "turns of a loop": (forward, LOGITS),
    "a label of each row": (lambda x: jnp.sum(where(np.eye(6) > 0, x - jax.nn.logsumexp(x, -1, keepdims=True), 0.0)), LOGITS),
    "densities": (lambda x: jnp.sum(where(HERE, jnp.exp(-0.5 * ((x - 0.3) / 2) ** 2), 0.0)), LINE),
    "heavy tails": (lambda x: jnp.sum(where(HERE, jnp.log1p(jnp.square(x * 2) / 3), 0.0)), LINE),
    "one over a power": (lambda x: jnp.sum(where(HERE, 1 / (1 + lax.integer_pow(x, 4)), 0.0)), LINE),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_GUARDED)
def test_what_makes_nan_itself_is_not_guarded(name: str) -> None:
    f, x = NOT_GUARDED[name]
    assert not te.explain(te.grad(f), x).guarded
    np.testing.assert_allclose(te.grad(f)(x), jax.grad(f)(x), rtol=1e-4, atol=1e-6)


ODD = np.where(np.arange(6)[:, None] % 2, np.float32(-np.inf), LOGITS)
FINITE = (np.arange(6) % 2 == 0)[:, None]


@jax.custom_jvp
def logarithm(x: Any) -> Any:
    return jnp.log(x)


logarithm.defjvps(lambda t, ans, x: t / x)

GUARDED = {
    "a rule whose value is not compared": (lambda x: jnp.sum(where(x > 0, logarithm(x), 0.0)), LINE),
    "a rule whose value is infinite below": (lambda x: jnp.sum(where(logarithm(abs(x)) == -np.inf, 0.0, logarithm(abs(x)))), LINE),
    "rows without a label": (lambda x: jnp.sum(where(np.eye(6) * FINITE > 0, x - jax.nn.logsumexp(x, -1, keepdims=True), 0.0)), ODD),
    "a mask that is given": (lambda x: jnp.sum(where(FINITE, softmax(x), 0.0) ** 2), ODD),
    "what is no number": (of_probabilities(lambda p, x: where(jnp.isnan(p), 0.0, p)), ODD),
    "a comparison that NaN fails": (of_probabilities(lambda p, x: where(p >= 0, p, 0.0)), ODD),
    "either comparison": (of_probabilities(lambda p, x: where((p < 0.1) | ~FINITE, 0.0, p)), ODD),
    "a mask around": (of_probabilities(lambda p, x: where(FINITE, held(p), 0.0)), ODD),
    "what is not compared itself": (lambda x: jnp.sum(where(x < -9, 0.0, softmax(x)) ** 2), ODD),
    "infinity that is replaced": (lambda x: jnp.sum(where(x < 2, jnp.exp(x), 0.0)), LINE * 10),
    "an exponential of a power": (lambda x: jnp.sum(where(abs(x) < 3, jnp.exp(x**2), 0.0)), LINE),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDED)
def test_what_is_left_out_by_others_is_guarded(name: str) -> None:
    f, x = GUARDED[name]
    found = te.grad(f)(x)
    assert np.isfinite(found).all()


def test_nan_that_is_missing_is_where_it_was() -> None:
    """A square multiplies by NaN, with a guard behind it or without: the same elements of the gradients are NaN."""

    def f(x: Any, centre: Any) -> Any:
        return jnp.sum(where(x == x, jnp.exp(-((x - centre) ** 2)), 0.0))

    def chosen(x: Any, centre: Any) -> Any:
        return jnp.sum(where(x == x, jnp.exp(-where(x == x, (x - centre) ** 2, 0.0)), 0.0))

    x = np.where(HERE, LINE, np.nan)
    found, expected = (g(f_, (0, 1))(x, LINE) for g, f_ in ((te.grad, f), (jax.grad, chosen)))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def of_both_halves(x: Any) -> Any:
    """Similarities of rows with those of two arrays side by side, of which one number of each row is left out."""
    scores = jnp.concatenate([x @ x.T, x @ x[::-1].T], 1)
    left_out = jnp.concatenate([jnp.eye(6, dtype=bool), jnp.zeros((6, 6), bool)], 1)
    return jnp.sum(jnp.log(jnp.sum(where(left_out, 0.0, jnp.exp(scores)), 1) / jnp.sqrt(jnp.sum(x * x, 1))))


@pytest.mark.parametrize(
    "f", [NOT_GUARDED["a label of each row"][0], GUARDED["rows without a label"][0], of_both_halves]
)
def test_known_conditions_are_looked_at_by_numpy(f: Any) -> None:
    compiled: list[str] = []  # by XLA, or taken from what it has compiled before
    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiled.append(event))
    try:
        with run_by_xla():
            jax.make_jaxpr(te.grad(f))(LOGITS)
    finally:
        jax.monitoring.clear_event_listeners()
    assert not [event for event in compiled if "jaxpr_to_mlir" in event]

"""States of a recurrence that are the same at all positions of an axis are carried without it."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.agreement import interpreted

ROW = "idle axes of states"
T, B, K = 7, 3, 5


def forward(e: te.Tensor, w: te.Tensor) -> te.Tensor:
    """The forward algorithm: the largest of a row is taken off, and added again."""
    i, k = (te.reduce_axis((0, K), n) for n in "ik")
    a, _ = te.recurrence(
        (T, B, K),
        lambda a, m, t, b, j: (
            m[t, b, j] + te.log(te.sum(te.exp(a[t - 1, b, i] - m[t, b, j]) * w[i, j], axis=i)) + e[t, b, j],
            te.max(a[t - 1, b, k], axis=k),
        ),
        init=(0.0, 0.0),
    )
    return te.compute((B, K), lambda b, j: a[T - 1, b, j])


def running(e: te.Tensor, w: te.Tensor) -> te.Tensor:
    """What has no axis of a row reads itself, and the rest of the graph reads it with that axis."""
    k = te.reduce_axis((0, K), "k")
    h, s = te.recurrence(
        (T, B, K),
        lambda h, s, t, b, j: (
            te.tanh(e[t, b, j] + 0.3 * s[t, b, j] * h[t - 1, b, (j + 1) % K]),
            0.5 * s[t - 1, b, j] + te.sum(h[t - 1, b, k] * w[k, 0], axis=k),
        ),
        init=(0.1, 1.0),
    )
    return te.compute((T, B, K), lambda t, b, j: h[t, b, j] * s[t, b, K - 1 - j])


def gains(e: te.Tensor, w: te.Tensor) -> te.Tensor:
    """A filter that adapts to the energy of all that came before, from the other end."""
    k = te.reduce_axis((0, K), "k")
    y, _ = te.recurrence(
        (T, B, K),
        lambda y, g, t, b, j: (
            e[t, b, j] / te.sqrt(1 + g[t, b, j]) + w[0, 0] * y[t + 1, b, j],
            0.9 * g[t + 1, b, j] + te.sum(e[t, b, k] ** 2, axis=k),
        ),
        init=(0.0, 0.0),
        reverse=True,
    )
    return y


CASES = {f.__name__: f for f in (forward, running, gains)}


@pytest.mark.parametrize("name", CASES)
def test_what_is_the_same_along_an_axis_has_none(name: str) -> None:
    rng = np.random.default_rng(0)
    e, w = rng.normal(size=(T, B, K)).astype("float32"), rng.uniform(0.1, 1, (K, K)).astype("float32")
    own_e, own_w = te.placeholder((T, B, K), name="e"), te.placeholder((K, K), name="w")
    f, plain = te.function(CASES[name]), te.function(CASES[name], without=ROW)
    expected = interpreted(CASES[name](own_e, own_w), {own_e: e, own_w: w})
    np.testing.assert_allclose(f(e, w), expected, rtol=1e-5, atol=1e-6)
    head = rng.normal(size=expected.shape).astype("float32")
    for own, other in zip(jax.vjp(f, e, w)[1](head), jax.vjp(plain, e, w)[1](head), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)
    assert re.search(r"\b[msg]\[t, b\]", te.source(f, e, w))
    assert not re.search(r"\b[msg]\[t, b\]", te.source(plain, e, w))


def test_a_state_that_begins_with_other_values_along_an_axis_keeps_it() -> None:
    start = te.placeholder((K,), name="start")
    s = te.recurrence((T, K), lambda s, t, j: 0.5 * s[t - 1, j], init=start)
    x = np.arange(K, dtype="float32")
    np.testing.assert_allclose(te.evaluate(s, {start: x}), np.outer(0.5 ** np.arange(1, T + 1), x), rtol=1e-6)


def test_sums_over_states_are_products_again() -> None:
    """The exponential of ``forward`` depends on one axis, and what it is multiplied by on another one."""
    text = te.source(te.function(forward), jnp.ones((T, B, K)), jnp.ones((K, K)))
    assert "a_before - m[:, None]" in text
    assert "a_before[:, :, None]" not in text

"""What an extremum reads where a condition holds is the array that choices by the same condition read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def _weights(x: te.Tensor, limit: float | None) -> te.Tensor:
    """Weights of a softmax over the elements before each, or over those that are less than ``limit``."""
    n = x.shape[1]
    j = te.reduce_axis((0, n), "j")

    def holds(i: te.Expr, j: te.Expr) -> te.Expr:
        return j <= i if limit is None else x[i, j] < limit

    s = te.compute(x.shape, lambda i, j: x[i, j] * x[i, 0], "s")
    m = te.compute((n,), lambda i: te.max(s[i, j], axis=j, where=holds(i, j)), "m")
    w = te.compute(x.shape, lambda i, j: te.select(holds(i, j), te.exp(s[i, j] - m[i]), 0.0), "w")
    return te.compute(x.shape, lambda i, k: w[i, k] / te.sum(w[i, j], axis=j), "y")


def _plain(x: jax.Array, limit: float | None) -> jax.Array:
    held = jnp.tril(jnp.ones(x.shape, bool)) if limit is None else x < limit
    return jnp.where(held, jax.nn.softmax(jnp.where(held, x * x[:, :1], -jnp.inf), axis=1), 0.0)


@pytest.mark.parametrize("limit", [None, 0.9])
def test_scores_are_masked_once(limit: float | None) -> None:
    fn = te.function(lambda x: _weights(x, limit))
    x = np.random.default_rng(0).uniform(-1, 1, (7, 7)).astype("float32")
    text = str(te.source(fn, x))
    forward = text[: text.index("def backward")]
    assert forward.count("-jnp.inf") == 1, forward
    assert "jnp.exp(s_masked - " in forward, forward
    np.testing.assert_allclose(fn(x), _plain(x, limit), rtol=2e-6, atol=1e-7)
    head = jnp.cos(jnp.arange(49.0).reshape(7, 7))
    own, other = (jax.grad(lambda x, f=f: jnp.sum(f(x) * head))(x) for f in (fn, lambda x: _plain(x, limit)))
    np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)


def test_another_condition_reads_what_is_not_masked() -> None:
    x = te.placeholder((5, 5), name="x")
    j = te.reduce_axis((0, 5), "j")
    s = te.compute((5, 5), lambda i, j: te.sin(x[i, j]), "s")
    m = te.compute((5,), lambda i: te.max(s[i, j], axis=j, where=j <= i), "m")
    w = te.compute((5, 5), lambda i, j: te.select(j < i, te.exp(s[i, j] - m[i]), s[i, j]), "w")
    assert "s_masked" not in te.source(w)
    values = np.random.default_rng(1).normal(size=(5, 5)).astype("float32")
    np.testing.assert_allclose(te.evaluate(w, {x: values}), te.interpret(w, {x: values}), rtol=1e-6)

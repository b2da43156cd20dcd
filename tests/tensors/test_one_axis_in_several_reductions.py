"""One reduction axis in several reductions and bodies that are evaluated together: each runs over it by itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

X, W = te.placeholder((5, 8), name="X"), te.placeholder((8,), name="W")


def tensors() -> list[te.Tensor]:
    """Sums, a maximum, a guarded product and a scan, all over k; each reads what the one before has reduced."""
    k = te.reduce_axis((0, 8), "k")
    a = te.compute((5,), lambda i: te.sum(X[i, k] * W[k], axis=k), "a")
    b = te.compute((5,), lambda i: te.max(X[i, k], axis=k) + te.sum(W[k], axis=k), "b")
    c = te.compute(
        (5,), lambda i: te.sum(a[i] * X[i, k], axis=k) / te.sum(te.exp(X[i, k] - b[i]), axis=k), "c"
    )
    d = te.compute((8,), lambda j: te.prod(te.select(k <= j, 1 + X[0, k], 1.0), axis=k), "d")
    e = te.compute((), lambda: te.sum(d[k] * W[k], axis=k) + c[1] + a[2], "e")
    return [a, b, c, d, e]


def plain(x: jax.Array, w: jax.Array) -> tuple[jax.Array, ...]:
    a = x @ w
    b = x.max(1) + w.sum()
    c = (a[:, None] * x).sum(1) / jnp.exp(x - b[:, None]).sum(1)
    d = jnp.cumprod(1 + x[0])
    return a, b, c, d, d @ w + c[1] + a[2]


def test_values_and_gradients(rng: np.random.Generator) -> None:
    x, w = (rng.uniform(0.1, 0.9, size=s).astype("float32") for s in ((5, 8), (8,)))
    made = tensors()
    for found, meant, expected in zip(
        te.evaluate(made, {X: x, W: w}), te.interpret(made, {X: x, W: w}), plain(x, w), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(meant, expected, rtol=1e-5)
    adjoints = te.evaluate(te.differentiate(made[-1], [X, W]), {X: x, W: w})
    for found, expected in zip(adjoints, jax.grad(lambda x, w: plain(x, w)[-1], (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_an_open_axis_has_a_range_in_each_body() -> None:
    k = te.axis("k")
    wide = te.compute(lambda i: te.sum(X[i, k], over=k) - te.max(X[i, k], over=k), "wide")
    short = te.compute(lambda: te.mean(W[2 * k], over=k), "short")
    x, w = np.arange(40, dtype="float32").reshape(5, 8), np.arange(8, dtype="float32")
    found = te.evaluate([wide, short], {X: x, W: w})
    np.testing.assert_array_equal(found[0], x.sum(1) - x.max(1))
    assert found[1] == 3.0


def test_not_within_itself() -> None:
    k = te.reduce_axis((0, 8), "k")
    with pytest.raises(
        te.DefinitionError, match=r"reduces over the same axis already; make a new te\.reduce_axis"
    ):
        te.compute((5,), lambda i: te.sum(X[i, k] * te.sum(W[k], axis=k), axis=k))

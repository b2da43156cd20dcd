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


def test_a_prefix_is_read_at_the_axis_that_it_runs_over(rng: np.random.Generator) -> None:
    """Joints of an arm: the angle of each is the sum of those before it. Read through, every prefix was the whole sum."""

    @te.function
    def reached(turned: te.Tensor, lengths: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, 8), "k")
        angle = te.compute((8,), lambda i: te.sum(turned[k], axis=k, where=k <= i), "angle")
        direction = lambda c: te.select(c == 0, te.cos(angle[k]), te.sin(angle[k]))  # noqa: E731
        return te.compute((2,), lambda c: te.sum(lengths[k] * direction(c), axis=k), "reached")

    def by_hand(turned: jax.Array, lengths: jax.Array) -> jax.Array:
        angle = jnp.cumsum(turned)
        return jnp.stack([lengths @ jnp.cos(angle), lengths @ jnp.sin(angle)])

    args = rng.normal(size=8).astype("float32"), rng.uniform(0.5, 2, 8).astype("float32")
    np.testing.assert_allclose(reached(*args), by_hand(*args), rtol=1e-5)
    for found, expected in zip(*(jax.jacrev(f, (0, 1))(*args) for f in (reached, by_hand)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

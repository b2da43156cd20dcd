"""Pools of tensors that XLA computes again in each loop: whoever asks for the maximum finds the bits that it was found of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te


def normed(x: te.Tensor) -> te.Tensor:
    """Columns moved and of variance 1: cheap enough to be computed again wherever it is read."""
    n, m = x.shape
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    mean = te.compute((m,), lambda j: te.sum(x[k, j], axis=k), "mean")
    var = te.compute((m,), lambda j: te.sum((x[r, j] - mean[j] / n) ** 2, axis=r) / n, "var")
    return te.compute((n, m), lambda i, j: (x[i, j] - mean[j] / 6) * te.rsqrt(var[j] + 0.1), "y")


def squashed(y: te.Tensor) -> te.Tensor:
    k, r = (te.reduce_axis((0, e), name=name) for e, name in zip(y.shape, "kr", strict=True))
    return te.compute((), lambda: te.sum(te.tanh(y[k, r]), axis=(k, r)), "squashed")


def pool(y: te.Tensor, size: int, stride: int, reduction: Any, ties: str) -> te.Tensor:
    n, m = y.shape
    k = te.reduce_axis((0, size), name="k")
    extents = (n, (m - size) // stride + 1)
    return te.compute(extents, lambda i, j: reduction(y[i, stride * j + k], axis=k, ties=ties), "pooled")


def plain(x: jax.Array, size: int, stride: int, sign: float) -> jax.Array:
    y = (x - x.sum(0, keepdims=True) / 6) * lax.rsqrt(x.var(0, keepdims=True) + 0.1)
    pooled = lax.reduce_window(sign * y, -jnp.inf, lax.max, (1, size), (1, stride), "VALID")
    return 2 * jnp.tanh(y).sum() + 4 * jnp.tanh(sign * pooled).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("size", "stride", "reduction", "ties"),
    [(2, 2, te.max, "first"), (2, 2, te.min, "even"), (3, 2, te.max, "all"), (40, 8, te.max, "last")],
)
def test_no_gradient_is_lost_where_a_norm_is_pooled(
    size: int, stride: int, reduction: Any, ties: str, dtype: str
) -> None:
    x = te.placeholder((32, 64), dtype, name="x")
    y = normed(x)
    function = te.function([x], [squashed(y), pool(y, size, stride, reduction, ties)])

    def loss(given: jax.Array) -> jax.Array:
        total, pooled = function(given)
        return 2 * total + 4 * jnp.tanh(pooled).sum()

    with jax.enable_x64(dtype == "float64"):
        given = np.random.default_rng(0).normal(size=(32, 64)).astype(dtype)
        expected = jax.grad(plain)(given, size, stride, 1.0 if reduction is te.max else -1.0)
        for gradient in (jax.grad(loss), jax.jit(jax.grad(loss))):
            np.testing.assert_allclose(gradient(given), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "size", "stride"), [((6, 5), 2, 2), ((16, 12), 2, 2), ((32, 64), 2, 2), ((16, 12), 3, 1)]
)
def test_no_gradient_is_lost_where_a_raised_norm_is_pooled(
    shape: tuple[int, int], size: int, stride: int, dtype: str
) -> None:
    def loss(x: jax.Array) -> jax.Array:
        return plain(x, size, stride, 1.0)

    with jax.enable_x64(dtype == "float64"):
        given = np.random.default_rng(1).normal(size=shape).astype(dtype)
        expected = jax.grad(loss)(given)
        raised = jax.grad(te.adjoint(loss, everything=True))
        for gradient in (raised, jax.jit(raised)):
            np.testing.assert_allclose(gradient(given), expected, rtol=1e-4, atol=1e-4)


def test_what_is_pooled_is_computed_once_in_the_backward_pass() -> None:
    x = te.placeholder((32, 64), name="x")
    y = normed(x)
    text = te.source(te.function([x], [squashed(y), pool(y, 2, 2, te.max, "first")]))
    backward = text[text.index("def backward") : text.index("def _fwd")]
    assert "y = _apart(" in backward and "whole_y =" not in backward


@pytest.mark.parametrize("pooled", [lambda y, j, k: y[2 * j + k], lambda y, j, k: y[63 - 2 * j - k]])
def test_inputs_are_not_copied(pooled: Callable[..., te.Expr]) -> None:
    x = te.placeholder((64,), name="x")
    k = te.reduce_axis((0, 2), name="k")
    y = te.compute((32,), lambda j: te.max(pooled(x, j, k), axis=k), "y")
    text = te.source(te.function([x], y))
    assert "_apart(x" not in text.replace("def _apart(x)", "")


@pytest.mark.parametrize("points", [9, 20, 31])
def test_how_many_share_a_maximum_is_counted_without_another_sum(
    points: int, rng: np.random.Generator
) -> None:
    """The elements are computed, so their places are bits of an integer, which are counted in five steps."""
    x, w = te.placeholder((7, points), name="x"), te.placeholder((points,), name="w")
    k = te.reduce_axis((0, points), "k")
    y = te.compute((7,), lambda i: te.max(x[i, k] * w[k] + x[i, k], axis=k), "y")
    given = [np.float32(rng.integers(-1, 2, s)) for s in ((7, points), (points,))]
    head, h = te.placeholder((7,), name="h"), rng.normal(size=7).astype("float32")
    dx = te.differentiate(y, [x], head)[0]
    elements = given[0] * given[1] + given[0]
    hit = elements == elements.max(1, keepdims=True)
    expected = h[:, None] * hit / hit.sum(1, keepdims=True) * (given[1] + 1)
    feeds = {x: given[0], w: given[1], head: h}
    for found in (te.evaluate(dx, feeds), te.interpret(dx, feeds)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert "jnp.sum(" not in te.source(dx)

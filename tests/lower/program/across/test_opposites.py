"""Differences of the same two arrays in both orders, where an array would be written for each: one of them is nothing less the other."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

Define = Callable[[te.Tensor], te.Tensor]
SHAPE = (6, 7)


def diffused(u: te.Tensor) -> te.Tensor:
    """What flows to both sides along a row, less where it is steep."""
    n, m = u.shape

    def flow(i: te.Axis, j: te.Axis, k: int) -> te.Expr:
        far = u[i, j + k] - u[i, j]
        return te.select(te.logical_and(j + k >= 0, j + k < m), far / (1 + far * far), 0.0)

    return te.compute((n, m), lambda i, j: u[i, j] + 0.2 * (flow(i, j, 1) + flow(i, j, -1)), "v")


def springs(x: te.Tensor) -> te.Tensor:
    """A chain of points in the plane, each pulled by the one before and the one behind."""
    n, m = x.shape
    pull = lambda i, a, b: x[i, b] - x[i, a] - (x[i, b] - x[i, a]) ** 3  # noqa: E731
    return te.compute((n, m - 2), lambda i, j: pull(i, j + 1, j) + 2 * pull(i, j, j + 1), "f")


def orders(x: te.Tensor) -> te.Tensor:
    """Of two tensors: how much each leads the other."""
    n, m = x.shape
    y = te.compute((n, m), lambda i, j: te.sin(x[i, m - 1 - j]), "y")
    return te.compute(
        (n, m), lambda i, j: te.exp(x[i, j] - y[i, j]) + te.sigmoid(2 * (y[i, j] - x[i, j])), "z"
    )


def _text(define: Define, platform: str) -> str:
    found = te.function(define, platform=platform).source(jax.ShapeDtypeStruct(SHAPE, "float32"))
    return re.sub(r'""".*?"""', "", str(found), flags=re.DOTALL).split("def backward")[0]


@pytest.mark.parametrize("define", [diffused, springs, orders])
def test_one_order_is_computed(define: Define) -> None:
    assert "0.0 - " in _text(define, "gpu") and "0.0 - " not in _text(define, "cpu")
    x = np.random.default_rng(0).normal(size=SHAPE)
    with jax.enable_x64(True):
        given = te.placeholder(SHAPE, "float64", "x")
        on_gpu, on_cpu = (te.function(define, platform=p) for p in ("gpu", "cpu"))
        found = on_gpu(x)
        np.testing.assert_allclose(found, te.interpret([define(given)], {given: x})[0], rtol=1e-13)
        weights = np.cos(np.arange(found.size)).reshape(found.shape)
        gradients = [jax.grad(lambda x, f=f: jnp.sum(weights * f(x)))(x) for f in (on_gpu, on_cpu)]
        np.testing.assert_allclose(*gradients, rtol=1e-12, atol=1e-13)


def test_the_order_that_stays_is_that_of_both_passes() -> None:
    """The later of two slices less the earlier one, whichever comes first in the text."""
    text = str(te.function(diffused, platform="gpu").source(jax.ShapeDtypeStruct(SHAPE, "float32")))
    taken = set(re.findall(r"u\[[^]]*\] - u\[[^]]*\]", re.sub(r'""".*?"""', "", text, flags=re.DOTALL)))
    assert taken == {"u[:, 1:] - u[:, :6]"}


def test_quotients_by_nothing_keep_their_sign() -> None:
    """``1 / 0`` is infinite upwards in either order."""

    def define(x: te.Tensor) -> te.Tensor:
        n, m = x.shape
        return te.compute(
            (n, m - 1), lambda i, j: te.minimum(1 / (x[i, j] - x[i, j + 1]), 1 / (x[i, j + 1] - x[i, j])), "q"
        )

    assert "0.0 - " in _text(define, "gpu")
    np.testing.assert_array_equal(te.function(define, platform="gpu")(np.ones(SHAPE, "float32")), np.inf)


def test_squares_are_those_of_one_order() -> None:
    def define(x: te.Tensor) -> te.Tensor:
        n, m = x.shape
        return te.compute(
            (n, m - 1), lambda i, j: te.exp((x[i, j] - x[i, j + 1]) ** 2) * te.abs(x[i, j + 1] - x[i, j]), "q"
        )

    text = _text(define, "gpu")
    assert "0.0 - " not in text and "x[:, :6] - x[:, 1:]" not in text
    x = np.random.default_rng(1).normal(size=SHAPE).astype("float32")
    np.testing.assert_allclose(
        te.function(define, platform="gpu")(x), te.function(define, platform="cpu")(x), rtol=1e-6
    )


def test_sizes_may_be_symbols() -> None:
    function = te.function(diffused, platform="gpu")
    n, m = jax.export.symbolic_shape("n, m")
    exported = jax.export.export(jax.jit(function))(jax.ShapeDtypeStruct((n, m), "float32"))
    x = np.random.default_rng(2).normal(size=(5, 9)).astype("float32")
    np.testing.assert_allclose(exported.call(x), te.function(diffused, platform="cpu")(x), rtol=1e-5)

"""Elements one position on, held at the end, where slices side by side are arrays: a choice between an array and its shift."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

Define = Callable[[te.Tensor], te.Tensor]


def laplacian(x: te.Tensor) -> te.Tensor:
    """Four neighbours, held at the edges."""
    n, m = x.shape
    up, down = (lambda i: te.maximum(i - 1, 0)), (lambda i, n: te.minimum(i + 1, n - 1))
    return te.compute(
        (n, m), lambda i, j: x[up(i), j] + x[down(i, n), j] + x[i, up(j)] * x[i, down(j, m)], "y"
    )


def lengths(x: te.Tensor) -> te.Tensor:
    """Steps to the next row along the first of three dimensions, none at the last."""
    n, m, c = x.shape
    return te.compute(
        (n, m, c), lambda t, p, d: te.sqrt(1 + (x[te.minimum(t + 1, n - 1), p, d] - x[t, p, d]) ** 2), "s"
    )


def smoothed(x: te.Tensor) -> te.Tensor:
    """Each row with the one before, by weights of their distance."""
    n, m = x.shape
    before = lambda i, j: x[te.maximum(i - 1, 0), j]  # noqa: E731
    return te.compute(
        (n, m), lambda i, j: before(i, j) * te.exp(-te.abs(x[i, j] - before(i, j))) + x[i, j], "w"
    )


def two_on(x: te.Tensor) -> te.Tensor:
    n, m = x.shape
    return te.compute((n, m), lambda i, j: x[te.maximum(i - 2, 0), j] * x[i, j], "z")


def _text(define: Define, platform: str, dtype: str = "float32") -> str:
    shape = (7, 6, 3) if define is lengths else (7, 6)
    return str(te.function(define, platform=platform).source(jax.ShapeDtypeStruct(shape, dtype)))


@pytest.mark.parametrize("define", [laplacian, lengths, smoothed])
def test_ends_are_chosen(define: Define) -> None:
    text = _text(define, "tpu")
    assert 'mode="edge"' not in text and re.search(r"jnp.where\(.*_shifted\(x", text)
    assert 'mode="edge"' in _text(define, "gpu")
    x = np.random.default_rng(0).normal(size=(7, 6, 3) if define is lengths else (7, 6))
    with jax.enable_x64(True):
        given = te.placeholder(x.shape, "float64", "x")
        on_tpu, on_cpu = (te.function(define, platform=p) for p in ("tpu", "cpu"))
        np.testing.assert_allclose(on_tpu(x), te.interpret(define(given), {given: x}), rtol=1e-13)
        weights = np.cos(np.arange(x.size)).reshape(x.shape)
        gradients = [jax.grad(lambda x, f=f: jnp.sum(weights * f(x)))(x) for f in (on_tpu, on_cpu)]
        np.testing.assert_allclose(*gradients, rtol=1e-12, atol=1e-13)


def test_infinite_elements_stay_where_they_are() -> None:
    x = np.full((7, 6), 2.0, "float32")
    x[3, 3] = np.inf
    found = np.asarray(te.function(laplacian, platform="tpu")(x))
    assert (np.isinf(found)).sum() == 4 and not np.isnan(found).any()


def test_what_is_left() -> None:
    assert 'mode="edge"' in _text(two_on, "tpu")
    assert 'mode="edge"' in _text(smoothed, "tpu", "int32")

"""Variances and covariances pass nothing on to the means that they are taken around, and their derivatives of both orders are those of plain JAX code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def _mean(x: Any, w: Any = None, less: int = 0) -> Any:
    n, f = x.shape
    j = te.reduce_axis((0, f), "j")
    if w is None:
        return te.compute((n,), lambda b: te.sum(x[b, j], axis=j) / (f - less), "mean")
    total = te.compute((n,), lambda b: te.sum(w[b, j], axis=j), "total")
    return te.compute((n,), lambda b: te.sum(w[b, j] * x[b, j], axis=j) / total[b], "mean")


def _variance(x: Any) -> Any:
    n, f = x.shape
    j, mean = te.reduce_axis((0, f), "j"), _mean(x)
    return te.compute((n,), lambda b: te.sum((x[b, j] - mean[b]) ** 2, axis=j) / f, "v")


def _scaled_mean(x: Any) -> Any:
    n, f = x.shape
    j = te.reduce_axis((0, f), "j")
    mean = te.compute((n,), lambda b: te.sum(x[b, j], axis=j) * (1 / f), "mean")
    return te.compute((n,), lambda b: te.sum((mean[b] - x[b, j]) * (mean[b] - x[b, j]), axis=j), "v")


def _weighted(x: Any, w: Any) -> Any:
    n, f = x.shape
    j, mean = te.reduce_axis((0, f), "j"), _mean(x, w)
    return te.compute((n,), lambda b: te.sum(w[b, j] * (x[b, j] - mean[b]) ** 2, axis=j), "v")


def _covariance(x: Any, y: Any) -> Any:
    n, f = x.shape
    j = te.reduce_axis((0, f), "j")
    mean, other = _mean(x), _mean(y)
    return te.compute((n,), lambda b: te.sum((x[b, j] - mean[b]) * (y[b, j] - other[b]), axis=j), "v")


def _around_another_number(x: Any) -> Any:
    n, f = x.shape
    j, mean = te.reduce_axis((0, f), "j"), _mean(x, less=1)
    return te.compute((n,), lambda b: te.sum((x[b, j] - mean[b]) ** 2, axis=j), "v")


def _cubes(x: Any) -> Any:
    n, f = x.shape
    j, mean = te.reduce_axis((0, f), "j"), _mean(x)
    return te.compute((n,), lambda b: te.sum((x[b, j] - mean[b]) ** 3, axis=j), "v")


def _weighted_alone(x: Any, w: Any) -> Any:
    n, f = x.shape
    j, mean = te.reduce_axis((0, f), "j"), _mean(x)
    return te.compute((n,), lambda b: te.sum(w[b, j] * (x[b, j] - mean[b]) ** 2, axis=j), "v")


def _centred(x: Any, w: Any = 1.0, less: int = 0) -> Any:
    weights = jnp.ones_like(x) * w
    return x - (weights * x).sum(1, keepdims=True) / (weights.sum(1, keepdims=True) - less)


CASES = [
    (_variance, lambda x: (_centred(x) ** 2).mean(1), 1, True),
    (_scaled_mean, lambda x: (_centred(x) ** 2).sum(1), 1, True),
    (_weighted, lambda x, w: (w * _centred(x, w) ** 2).sum(1), 2, True),
    (_covariance, lambda x, y: (_centred(x) * _centred(y)).sum(1), 2, True),
    (_around_another_number, lambda x: (_centred(x, less=1) ** 2).sum(1), 1, False),
    (_cubes, lambda x: (_centred(x) ** 3).sum(1), 1, False),
    (_weighted_alone, lambda x, w: (w * _centred(x) ** 2).sum(1), 2, False),
]


@pytest.mark.parametrize(
    ("definition", "plain", "count", "is_idle"), CASES, ids=[c[0].__name__[1:] for c in CASES]
)
def test_the_mean(
    definition: Callable[..., Any], plain: Callable[..., Any], count: int, is_idle: bool
) -> None:
    rng = np.random.default_rng(3)
    args = [rng.uniform(0.5, 2.0, (3, 5)) for _ in range(count)]
    f = te.function(definition)
    assert ("dmean[" not in f.source(*args)) == is_idle

    def loss(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *a: jnp.sum(jnp.sin(fn(*a)))

    every = tuple(range(count))
    with jax.enable_x64(True):
        for transform in (jax.grad, jax.hessian, jax.jacfwd):
            _agree(transform(loss(f), every)(*args), transform(loss(plain), every)(*args))


def test_a_mean_that_is_asked_for_keeps_its_slope() -> None:
    x = te.placeholder((3, 5), "float64", "x")
    v = _variance(x)
    mean = v
    while mean.name != "mean":
        mean = next(t for t in mean.inputs if t.name != "x")
    (slope,) = te.differentiate(v, [mean])
    (curvature,) = te.differentiate(slope, [mean])
    found = te.interpret(curvature, {})
    np.testing.assert_allclose(np.einsum("iii->i", found), 2.0)


def test_a_function_that_is_given_is_asked_for_every_slope() -> None:
    x, asked = te.placeholder((3, 5), "float64", "x"), []

    def fdiff(output: te.Tensor, input: te.Tensor, head: te.Tensor) -> te.Tensor:
        asked.append((output.name, input.name))
        return te.diff_building_block(output, input, head)

    te.differentiate(_variance(x), [x], fdiff=fdiff)
    assert ("v_0", "mean") in asked


def _agree(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)

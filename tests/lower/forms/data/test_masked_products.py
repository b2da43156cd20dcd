"""Sums over what data choose for each row: a product with the matrix of zeros and ones, exact where values are not finite."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor
from tests.xla_counts import Fused

ROWS, POINTS, COLUMNS = 20, 60, 18
Builder = Callable[[Tensor, Tensor], Compute]


def segments(x: Tensor, t: Tensor) -> Compute:
    i = te.reduce_axis((0, POINTS), "i")
    inside = lambda s: te.logical_and(i >= t[s], i < t[s + 1])  # noqa: E731
    return te.compute((ROWS, COLUMNS), lambda s, c: te.sum(te.select(inside(s), x[i, c], 0.0), i), "y")


def later(x: Tensor, t: Tensor) -> Compute:
    """What comes after each: the sums of a partial likelihood."""
    i = te.reduce_axis((0, POINTS), "i")
    return te.compute((ROWS, COLUMNS), lambda s, c: te.sum(te.exp(x[i, c]), i, where=t[i] >= t[s]), "y")


def close_neighbours(x: Tensor, t: Tensor) -> Compute:
    i = te.reduce_axis((0, POINTS), "i")
    near = lambda s: te.logical_and(te.abs(t[i] - t[s]) < 9, i != s)  # noqa: E731
    return te.compute((ROWS, COLUMNS), lambda s, c: te.sum(x[i, c], i, where=near(s)), "y")


FUNCTIONS: dict[str, Builder] = {f.__name__: f for f in (segments, later, close_neighbours)}


def arguments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((POINTS, COLUMNS)).astype("float32")
    return x, np.sort(rng.integers(0, POINTS, POINTS)).astype("int32")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("spoilt", ["finite", "inf", "-inf", "nan", "both"])
def test_values(name: str, spoilt: str, rng: np.random.Generator) -> None:
    x, t = arguments(rng)
    if spoilt != "finite":
        x[7, 2] = float(spoilt) if spoilt != "both" else float("inf")
        x[8, 2] = -float("inf") if spoilt == "both" else 1.0
    places = [te.placeholder(x.shape, name="x"), te.placeholder(t.shape, "int32", name="t")]
    expected = te.interpret(FUNCTIONS[name](*places), dict(zip(places, (x, t), strict=True)))
    found = te.function(FUNCTIONS[name])(x, t)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_array_of_all_points(name: str) -> None:
    fn = te.function(FUNCTIONS[name])
    x, t = jax.ShapeDtypeStruct((POINTS, COLUMNS), "float32"), jax.ShapeDtypeStruct((POINTS,), "int32")
    assert "product with a mask" in str(te.explain(fn, x, t))
    memory = Fused(jax.jit(fn).lower(x, t)).memory_analysis()
    assert memory.temp_size_in_bytes < 4 * ROWS * POINTS * COLUMNS


def test_gradients(rng: np.random.Generator) -> None:
    x, t = arguments(rng)
    h = rng.standard_normal((ROWS, COLUMNS)).astype("float32")
    (found,) = jax.vjp(lambda x: te.function(segments)(x, t), x)[1](h)
    inside = (np.arange(POINTS) >= t[:ROWS, None]) & (np.arange(POINTS) < t[1 : ROWS + 1, None])
    np.testing.assert_allclose(found, inside.T.astype("float32") @ h, rtol=1e-5, atol=1e-5)


def test_few_columns_stay_one_loop() -> None:
    i = te.reduce_axis((0, POINTS), "i")
    build = lambda x, t: te.compute((ROWS, 3), lambda s, c: te.sum(x[i, c], i, where=t[i] >= t[s]), "y")  # noqa: E731
    x, t = jax.ShapeDtypeStruct((POINTS, 3), "float32"), jax.ShapeDtypeStruct((POINTS,), "int32")
    assert "product with a mask" not in str(te.explain(te.function(build), x, t))


def test_platforms_that_reduce_in_one_loop_have_none() -> None:
    x, t = jax.ShapeDtypeStruct((POINTS, COLUMNS), "float32"), jax.ShapeDtypeStruct((POINTS,), "int32")
    for platform in ("gpu", "tpu"):
        assert "product with a mask" not in str(te.explain(te.function(segments, platform=platform), x, t))

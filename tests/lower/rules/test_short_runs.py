"""Products of arrays of one shape that are summed over a few positions side by side: slices, not a call of a library for each few elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def pairs(x: te.Tensor, h: te.Tensor) -> te.Tensor:
    r = te.reduce_axis((0, 2), "r")
    return te.compute((60, 150), lambda i, j: te.sum(x[i, 2 * j + r] * h[i, 2 * j + r], axis=r), "y")


def rows(x: te.Tensor, h: te.Tensor) -> te.Tensor:
    c = te.reduce_axis((0, 3), "c")
    return te.compute((60, 100), lambda i, j: te.sum(x[i, j, c] * te.tanh(h[i, j, c]), axis=c), "y")


def chosen(x: te.Tensor, h: te.Tensor) -> te.Tensor:
    c = te.reduce_axis((0, 3), "c")
    positive = lambda i, j: te.select(h[i, j, c] > 0, x[i, j, c], 0.0)  # noqa: E731
    return te.compute((60, 100), lambda i, j: te.sum(positive(i, j) * h[i, j, c], axis=c), "y")


CASES: dict[str, tuple[Callable[..., te.Tensor], Callable[..., Any], tuple[int, ...]]] = {
    "pairs": (pairs, lambda x, h: jnp.sum((x * h).reshape(60, 150, 2), 2), (60, 300)),
    "rows": (rows, lambda x, h: jnp.sum(x * jnp.tanh(h), 2), (60, 100, 3)),
    "chosen": (chosen, lambda x, h: jnp.sum(jnp.where(h > 0, x, 0) * h, 2), (60, 100, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_few_positions_side_by_side_are_slices(name: str, rng: np.random.Generator) -> None:
    build, reference, shape = CASES[name]
    arrays = [rng.standard_normal(shape).astype("float32") for _ in range(2)]
    fn = te.function(build)
    assert "jnp.sum" not in fn.source(*arrays).partition("def backward")[0]
    np.testing.assert_allclose(fn(*arrays), reference(*arrays), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_where_sums_are_fused_they_are_one(platform: str) -> None:
    x = np.zeros((60, 300), "float32")
    assert "jnp.sum" in te.function(pairs, platform=platform).source(x, x)


def test_more_positions_are_summed_in_one() -> None:
    def long(x: te.Tensor, h: te.Tensor) -> te.Tensor:
        r = te.reduce_axis((0, 5), "r")
        return te.compute((60, 60), lambda i, j: te.sum(x[i, 5 * j + r] * h[i, 5 * j + r], axis=r), "y")

    x = np.zeros((60, 300), "float32")
    assert "jnp.sum" in te.function(long).source(x, x)


@pytest.mark.parametrize(("rows", "dtype"), [(6, "float32"), (60, "float16")])
def test_few_elements_and_rounded_ones_are_summed_in_one(rows: int, dtype: str) -> None:
    r = te.reduce_axis((0, 2), "r")
    x, h = (te.placeholder((rows, 300), dtype, name) for name in "xh")
    y = te.compute((rows, 150), lambda i, j: te.sum(x[i, 2 * j + r] * h[i, 2 * j + r], axis=r), "y")
    assert "jnp.sum" in te.source(y)

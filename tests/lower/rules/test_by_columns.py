"""Weights times differences, summed one component after the other: the gradients of distances hold no differences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.xla_counts import Fused


def weighted(w: te.Tensor, x: te.Tensor, y: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    """The weighted differences of all pairs, summed over either side."""
    (n, m), size = w.shape, x.shape[1]
    i, j = te.reduce_axis((0, n), "i"), te.reduce_axis((0, m), "j")
    rows = te.compute((n, size), lambda i, c: te.sum(w[i, j] * (x[i, c] - y[j, c]), axis=j), "rows")
    columns = te.compute((m, size), lambda j, c: te.sum(w[i, j] * (x[i, c] - y[j, c]), axis=i), "columns")
    return rows, columns


def arrays(n: int, m: int, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype("float32") for shape in ((n, m), (n, size), (m, size))]


@pytest.mark.parametrize("size", [2, 3, 12])
def test_sums_over_both_sides_hold_no_differences(size: int) -> None:
    w, x, y = arrays(400, 300, size)
    compiled = Fused(jax.jit(te.function(weighted)).lower(w, x, y))
    differences = w[:, :, None].astype("float64") * (x[:, None].astype("float64") - y)
    for found, axis in zip(compiled(w, x, y), (1, 0), strict=True):
        np.testing.assert_allclose(found, differences.sum(axis), rtol=1e-4, atol=1e-3)
    assert compiled.memory_analysis().temp_size_in_bytes < w.nbytes / 4


@pytest.mark.parametrize(
    ("cheap", "plain"),
    [
        (lambda d, h: te.relu(1 - te.abs(d - h)), lambda d, h: np.maximum(1 - np.abs(d - h), 0)),
        (lambda d, h: te.minimum(d, 0.25 * h), lambda d, h: np.minimum(d, 0.25 * h)),
        (lambda d, h: te.abs(d - 0.5 * h), lambda d, h: np.abs(d - 0.5 * h)),
    ],
    ids=["hats", "the smaller", "absolute differences"],
)
def test_what_is_cut_off_or_folded_is_summed_so_too(cheap: Any, plain: Any) -> None:
    """Weights of soft histograms."""

    def build(w: te.Tensor, d: te.Tensor) -> te.Tensor:
        i, j = te.reduce_axis((0, w.shape[0]), "i"), te.reduce_axis((0, w.shape[1]), "j")
        return te.compute((12,), lambda h: te.sum(w[i, j] * cheap(d[i, j], h), axis=(i, j)), "s")

    w, d = np.random.default_rng(0).standard_normal((2, 400, 300)).astype("float32")
    compiled = Fused(jax.jit(te.function(build)).lower(w, d))
    expected = (w[:, :, None] * plain(d[:, :, None].astype("float64"), np.arange(12))).sum((0, 1))
    np.testing.assert_allclose(compiled(w, d), expected, rtol=1e-4, atol=1e-2)
    assert str(te.source(te.function(build), w, d)).split("def backward")[0].count("jnp.sum(") == 12


@pytest.mark.parametrize(
    ("n", "m", "size"), [(4000, 8, 12), (400, 300, 40)], ids=["short side", "many columns"]
)
def test_other_shapes_are_products(n: int, m: int, size: int) -> None:
    """A short side is summed in one loop with its columns; many columns would be a long text."""
    text = te.source(te.function(weighted), *map(jnp.asarray, arrays(n, m, size)))
    assert "_again" not in text


def test_small_arrays_have_no_barriers_and_costly_elements_stay_products() -> None:
    """No barriers where nothing is gained; what takes an exponential is computed once."""
    small = te.source(te.function(weighted), *map(jnp.asarray, arrays(20, 30, 3)))
    assert "_again" not in small

    def bumps(w: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
        j = te.reduce_axis((0, w.shape[1]), "j")
        return te.compute(x.shape, lambda i, c: te.sum(w[i, j] * te.exp(x[i, c] - y[j, c]), axis=j))

    assert "_again" not in te.source(te.function(bumps), *map(jnp.asarray, arrays(300, 400, 3)))

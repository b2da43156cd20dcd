"""Sums over the features of gathered rows: one half of the features is added to the other, in one loop with the gathers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from jaxte.lower.forms.data.pairwise_feature_sums import HALVES
from jaxte.tensors.tensor import Tensor

N, E = 40, 300
Rows = Callable[[Any, Any], Any]

BODIES: dict[str, Rows] = {
    "products": lambda a, b: a * b,
    "distances": lambda a, b: (a - b) ** 2,
    "a quotient": lambda a, b: a / (1 + b * b),
}


def scored(body: Rows) -> Callable[..., Tensor]:
    def scores(q: Tensor, k: Tensor, row: Tensor, col: Tensor) -> Tensor:
        f = te.reduce_axis((0, q.shape[1]), "f")
        return te.compute(row.shape, lambda e: te.sum(body(q[row[e], f], k[col[e], f]), axis=f), "s")

    return scores


def arrays(features: int, rng: np.random.Generator) -> list[np.ndarray]:
    q, k = (rng.standard_normal((N, features)).astype("float32") for _ in "qk")
    row, col = (rng.integers(0, N, E).astype("int32") for _ in "rc")
    return [q, k, row, col]


@pytest.mark.parametrize("features", [4, 6, 7, 24, 32, 40])
@pytest.mark.parametrize("name", BODIES)
def test_halves_are_added(name: str, features: int, rng: np.random.Generator) -> None:
    q, k, row, col = arrays(features, rng)
    fn = te.function(scored(BODIES[name]))
    h = rng.standard_normal(E).astype("float32")
    found, pull = jax.vjp(lambda q, k: fn(q, k, row, col), q, k)
    plain = lambda q, k: jnp.sum(BODIES[name](q[row], k[col]), axis=1)  # noqa: E731
    expected, plain_pull = jax.vjp(plain, jnp.asarray(q), jnp.asarray(k))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    for own, theirs in zip(pull(h), plain_pull(h), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-3, atol=1e-3)
    text = fn.source(q, k, row, col).split("def backward")[0]
    assert HALVES in fn.explain(q, k, row, col).forms["s"]
    assert "jnp.sum(" not in text and "einsum" not in text
    assert (f"[:, :{features // 2}] + " in text) == (features % 2 == 0)


def test_both_gathers_are_in_the_loop_that_adds(rng: np.random.Generator) -> None:
    args = arrays(32, rng)
    own = jax.jit(te.function(scored(BODIES["products"]))).lower(*args).compile().memory_analysis()
    sums = te.function(scored(BODIES["products"]), forms={"s": "general"})
    theirs = jax.jit(sums).lower(*args).compile().memory_analysis()
    assert own is not None and theirs is not None
    rows = E * 32 * 4
    assert theirs.temp_size_in_bytes >= 2 * rows
    assert own.temp_size_in_bytes <= rows // 2


def test_positions_out_of_range_are_nan(rng: np.random.Generator) -> None:
    q, k, row, col = arrays(16, rng)
    row[3], col[5] = N, -1
    found = np.asarray(te.function(scored(BODIES["products"]))(q, k, row, col))
    assert np.isnan(found[[3, 5]]).all() and np.isnan(found).sum() == 2


def test_positions_of_several_dimensions(rng: np.random.Generator) -> None:
    q, k, *_ = arrays(16, rng)
    near = rng.integers(0, N, (2, 9, 5)).astype("int32")
    far = rng.integers(0, N, (2, 9, 5)).astype("int32")

    def scores(q: Tensor, k: Tensor, near: Tensor, far: Tensor) -> Tensor:
        f = te.reduce_axis((0, 16), "f")
        return te.compute(
            near.shape, lambda a, b, c: te.sum(q[near[a, b, c], f] * k[far[a, b, c], f], axis=f), "s"
        )

    fn = te.function(scores)
    np.testing.assert_allclose(fn(q, k, near, far), (q[near] * k[far]).sum(-1), rtol=1e-4, atol=1e-5)
    assert "[:, :, :, :8] + " in fn.source(q, k, near, far)


KEPT = {
    "an odd number of many features": (33, "float32", "cpu"),
    "few features": (3, "float32", "cpu"),
    "short floats, which would be rounded": (32, "float16", "cpu"),
    "another platform": (32, "float32", "gpu"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_summed_by_the_library(name: str) -> None:
    features, dtype, platform = KEPT[name]
    shape = jax.ShapeDtypeStruct((N, features), dtype)
    at = jax.ShapeDtypeStruct((E,), "int32")
    fn = te.function(scored(BODIES["products"]), platform=platform)
    assert HALVES not in fn.explain(shape, shape, at, at).forms["s"]


def test_rows_that_another_tensor_gathers_are_in_memory(rng: np.random.Generator) -> None:
    q, k, row, col = arrays(32, rng)

    def both(q: Tensor, k: Tensor, row: Tensor, col: Tensor) -> list[Tensor]:
        rows = te.compute((E, 32), lambda e, f: te.exp(q[row[e], f]), "rows")
        return [rows, scored(BODIES["products"])(q, k, row, col)]

    fn = te.function(both)
    found = fn(q, k, row, col)
    np.testing.assert_allclose(found[1], (q[row] * k[col]).sum(1), rtol=1e-4, atol=1e-5)
    assert HALVES not in fn.explain(q, k, row, col).forms["s"]

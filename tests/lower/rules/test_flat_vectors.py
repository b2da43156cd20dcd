"""Products with vectors in several dimensions: one dimension for all of them where they stand side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

N, M = te.var("N"), te.var("M")
X = te.placeholder((5, 6, 7, 9), name="X")


def over(*extents: Any) -> list[Any]:
    return [te.reduce_axis((0, e), name) for e, name in zip(extents, "pqr", strict=False)]


def leading() -> te.Tensor:
    r, (p, q) = te.placeholder((5, 6), name="r"), over(5, 6)
    return te.compute((7, 9), lambda a, b: te.sum(X[p, q, a, b] * r[p, q], axis=[p, q]), "Y")


def trailing() -> te.Tensor:
    r, (p, q) = te.placeholder((7, 9), name="r"), over(7, 9)
    return te.compute((5, 6), lambda a, b: te.sum(X[a, b, p, q] * r[p, q], axis=[p, q]), "Y")


def between() -> te.Tensor:
    r, (p, q) = te.placeholder((6, 7), name="r"), over(6, 7)
    return te.compute((5, 9), lambda a, b: te.sum(r[p, q] * X[a, p, q, b], axis=[p, q]), "Y")


def three() -> te.Tensor:
    r, (p, q, s) = te.placeholder((5, 6, 7), name="r"), over(5, 6, 7)
    return te.compute((9,), lambda b: te.sum(X[p, q, s, b] * r[p, q, s], axis=[p, q, s]), "Y")


def sizes() -> te.Tensor:
    x, r, (p, q) = te.placeholder((N, M, 9), name="x"), te.placeholder((N, M), name="r"), over(N, M)
    return te.compute((9,), lambda a: te.sum(x[p, q, a] * r[p, q], axis=[p, q]), "Y")


def apart() -> te.Tensor:
    r, (p, q) = te.placeholder((5, 7), name="r"), over(5, 7)
    return te.compute((6, 9), lambda a, b: te.sum(X[p, a, q, b] * r[p, q], axis=[p, q]), "Y")


def in_another_order() -> te.Tensor:
    r, (p, q) = te.placeholder((6, 5), name="r"), over(5, 6)
    return te.compute((7, 9), lambda a, b: te.sum(X[p, q, a, b] * r[q, p], axis=[p, q]), "Y")


def matrix() -> te.Tensor:
    h, (p, q) = te.placeholder((5, 6, 4), name="h"), over(5, 6)
    return te.compute((7, 9, 4), lambda a, b, c: te.sum(X[p, q, a, b] * h[p, q, c], axis=[p, q]), "Y")


def batch() -> te.Tensor:
    r, (p, q) = te.placeholder((5, 6, 7), name="r"), over(6, 7)
    return te.compute((5, 9), lambda a, b: te.sum(X[a, p, q, b] * r[a, p, q], axis=[p, q]), "Y")


FLAT = {
    leading: "(X.reshape(30, 7, 9), r.reshape(30)",
    trailing: "X.reshape(5, 6, 63), r.reshape(63)",
    between: "r.reshape(42), X.reshape(5, 42, 9)",
    three: "X.reshape(210, 9), r.reshape(210)",
}
OTHERS = (sizes, apart, in_another_order, matrix, batch)


@pytest.mark.parametrize("build", [*FLAT, *OTHERS])
def test_values(build: Callable[[], te.Tensor]) -> None:
    y = build()
    rng = np.random.default_rng(0)
    known = {N: 4, M: 5}
    feeds = {t: rng.standard_normal([known.get(e, e) for e in t.shape]).astype("float32") for t in y.inputs}
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", [*FLAT, *OTHERS])
def test_dimensions_side_by_side_are_one(build: Callable[[], te.Tensor]) -> None:
    text = te.source(build())
    assert "jnp.einsum(" in text
    assert (".reshape(" in text) == (build in FLAT)
    assert FLAT.get(build, "jnp.einsum(").lstrip("(") in text


def test_nothing_is_copied() -> None:
    x, r, (p, q) = te.placeholder((16, 64, 128), name="x"), te.placeholder((16, 64), name="r"), over(16, 64)
    y = te.compute((128,), lambda a: te.sum(x[p, q, a] * r[p, q], axis=[p, q]), "y")
    own = [jax.ShapeDtypeStruct(t.shape, jnp.float32) for t in (x, r)]
    compiled = jax.jit(te.function([x, r], y)).lower(*own).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 16 * 64 * 128

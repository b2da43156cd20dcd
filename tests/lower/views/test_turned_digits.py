"""Indices whose values are sums of digits, in every spelling: reshapes, reversals and transpositions, in both passes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.tensors.tensor import Compute, Tensor

SIZE = 64
Index = Callable[[te.Axis], Expr]

INDICES: dict[str, tuple[Index, Callable[[int], int]]] = {
    "one bit": (lambda i: i ^ 8, lambda i: i ^ 8),
    "two bits apart": (lambda i: i ^ 36, lambda i: i ^ 36),
    "all bits": (lambda i: i ^ (SIZE - 1), lambda i: i ^ (SIZE - 1)),
    "the highest bit": (lambda i: i ^ (SIZE // 2), lambda i: i ^ (SIZE // 2)),
    "by hand": (lambda i: i + 4 - 8 * (i // 4 % 2), lambda i: i ^ 4),
    "three digits in another order": (
        lambda i: i % 4 * 16 + i // 16 * 4 + i // 4 % 4,
        lambda i: i % 4 * 16 + i // 16 * 4 + i // 4 % 4,
    ),
    "blocks backwards": (
        lambda i: i // 8 * 8 + 7 - i % 8,
        lambda i: i // 8 * 8 + 7 - i % 8,
    ),
}


@pytest.mark.parametrize("name", INDICES)
def test_emitted_as_views_without_copies(name: str, rng: np.random.Generator) -> None:
    index, plain = INDICES[name]
    places = np.array([plain(i) for i in range(SIZE)])

    def moved(x: Tensor, w: Tensor) -> Compute:
        return te.compute((3, SIZE), lambda b, i: w[i] * te.sin(x[b, index(i)]) + x[b, i], "y")

    fn = te.function(moved)
    x, w = rng.standard_normal((3, SIZE)).astype("float32"), rng.standard_normal(SIZE).astype("float32")
    y, pull = jax.vjp(fn, x, w)
    expected, plain_pull = jax.vjp(lambda x, w: w * jax.numpy.sin(x[:, places]) + x, x, w)
    for a, b in zip((y, *pull(y)), (expected, *plain_pull(y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    text = fn.source(x, w)
    assert not any(word in text for word in ("pad(", "tile(", "take(", ".at[", "gather", "concatenate"))


def test_blocks_of_a_flat_tensor_begin_where_they_are(rng: np.random.Generator) -> None:
    """Odd rows of 8, which end where the tensor does: no zeros after the last one."""

    def odd(x: Tensor) -> Compute:
        return te.compute((4, 8), lambda row, r: x[(2 * row + 1) * 8 + r] * 2, "y")

    x = rng.standard_normal(SIZE).astype("float32")
    forward = te.function(odd).source(x).split("def backward")[0]
    assert "pad(" not in forward
    np.testing.assert_allclose(te.function(odd)(x), 2 * x.reshape(4, 2, 8)[:, 1])


def test_a_digit_that_counts_otherwise_somewhere_is_none(rng: np.random.Generator) -> None:
    """The Gray code: the turn of a bit follows from the one above it."""

    def gray(x: Tensor) -> Compute:
        return te.compute((SIZE,), lambda i: x[i ^ (i >> 1)], "y")

    x = rng.standard_normal(SIZE).astype("float32")
    places = np.arange(SIZE) ^ (np.arange(SIZE) >> 1)
    np.testing.assert_allclose(te.function(gray)(x), x[places])

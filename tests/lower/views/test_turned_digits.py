"""Indices whose values are sums of digits, in every spelling: reshapes, reversals and transpositions, in both passes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Expr
from jaxte.lower.views import one_axis
from jaxte.sets import tabulate
from jaxte.sets.tabulate import tabulated
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


def test_ends_follow_from_digits(monkeypatch) -> None:
    """Positions are looked at once, few at a time."""
    asked: list[int] = []
    monkeypatch.setattr(
        tabulate,
        "tabulated",
        lambda index, at: asked.append(max(map(len, at.values()))) or tabulated(index, at),
    )
    i = te.reduce_axis((0, 2**14), "i")
    turned = i + 4 - 8 * (i // 4 % 2)
    for index, ends in ((turned, (0, 2**14 - 1)), (3 - turned, (4 - 2**14, 3))):
        assert one_axis.ends_of_values(index) == ends
        assert one_axis.digits_of_values(index, i) is not None
    assert sum(asked) == 2 * 2**14 and max(asked) < 2**14


@pytest.mark.parametrize("by", [1, 2, 3, 8, -4])
def test_positions_divided_by_numbers(by: int) -> None:
    """A power of two is a shift and a mask, for negative positions too."""
    i, at = te.reduce_axis((-9, 9), "i"), np.arange(-9, 9)
    for index, wanted in ((i // by, at // by), (i % by, at % by)):
        np.testing.assert_array_equal(np.broadcast_to(tabulated(index, {i: at}), 18), wanted)

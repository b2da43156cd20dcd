"""Sums over a batch and over positions that mix axes: the batch is summed first."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.tensors.tensor import Compute, Tensor


def table_of_two_distances(x: Tensor, b: Tensor) -> Compute:
    """Positions in windows of 3 x 3, as of shifted windows."""
    w = 3
    return te.compute(
        x.shape,
        lambda n, h, i, j: x[n, h, i, j] * b[i // w - j // w + w - 1, i % w - j % w + w - 1, h],
        "y",
    )


def table_of_distances(x: Tensor, b: Tensor) -> Compute:
    return te.compute(x.shape, lambda n, h, i, j: x[n, h, i, j] + b[h, i - j + x.shape[2] - 1], "y")


def table_of_sums(x: Tensor, b: Tensor) -> Compute:
    """Which antidiagonal an element of an image is on, for each channel."""
    return te.compute(x.shape, lambda n, c, i, j: x[n, c, i, j] - b[i + j, c], "y")


CASES: dict[Callable[[Tensor, Tensor], Compute], tuple[tuple[int, ...], tuple[int, ...]]] = {
    table_of_two_distances: ((16, 2, 9, 9), (5, 5, 2)),
    table_of_distances: ((16, 2, 40, 40), (2, 79)),
    table_of_sums: ((32, 3, 10, 14), (23, 3)),
}


def gradient(build: Callable[[Tensor, Tensor], Compute]) -> tuple[Tensor, dict[Tensor, np.ndarray]]:
    x, b = (te.placeholder(s, name=n) for s, n in zip(CASES[build], "xb", strict=True))
    y = build(x, b)
    head = te.placeholder(y.shape, name="h")
    (db,) = te.differentiate(y, [b], head=head)
    rng = np.random.default_rng(0)
    feeds = {t: rng.normal(size=t.shape).astype("float32") for t in (x, head)}
    return db, {t: a for t, a in feeds.items() if t is head or build is table_of_two_distances}


@pytest.mark.parametrize("build", CASES)
def test_the_batch_is_summed_once(build: Callable[[Tensor, Tensor], Compute]) -> None:
    db, feeds = gradient(build)
    whole = np.prod(next(iter(feeds)).shape)
    assert te.cost(db).iterations < 2 * whole, "each element once, and the table"
    code = te.source(db).split('"""')[-1]
    assert not re.search(r"\b[hx](\[|\.at)|pad\(h", code), (
        "of the batch nothing is sliced, gathered or padded"
    )


@pytest.mark.parametrize("build", CASES)
def test_values(build: Callable[[Tensor, Tensor], Compute]) -> None:
    db, feeds = gradient(build)
    np.testing.assert_allclose(te.evaluate(db, feeds), te.interpret(db, feeds), rtol=1e-4, atol=1e-4)


def test_what_few_elements_of_are_read_stays() -> None:
    """One diagonal: the sum of all matrices of a batch would have more points than it."""
    x, n, i = (
        te.placeholder((16, 30, 30), name="x"),
        te.reduce_axis((0, 16), "n"),
        te.reduce_axis((0, 10), "i"),
    )
    y = te.compute((2,), lambda d: te.sum(x[n, i, i + d], axis=[n, i]), "y")
    assert te.cost(y).iterations == 320


def test_sizes_that_are_symbols() -> None:
    n, m = te.var("n"), te.var("m")
    x, h = te.placeholder((n, 3, m, m), name="x"), te.placeholder((n, 3, m, m), name="h")
    b, k = te.reduce_axis((0, n), "b"), te.reduce_axis((0, m - 2), "k")
    y = te.compute((3, 3), lambda c, d: te.sum(x[b, c, k, k + d] * h[b, c, k, k + d], axis=[b, k]), "y")
    feeds = {t: np.random.default_rng(1).normal(size=(4, 3, 6, 6)).astype("float32") for t in (x, h)}
    np.testing.assert_allclose(te.evaluate(y, feeds), te.interpret(y, feeds), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("empty", ["batch", "window", "positions"])
def test_a_sum_over_no_points_is_zero(empty: str) -> None:
    batch, taps, places = (
        0 if empty == name else n for name, n in [("batch", 5), ("window", 3), ("positions", 4)]
    )
    x = te.placeholder((6, batch), name="x")
    k, n = te.reduce_axis((0, taps), "k"), te.reduce_axis((0, batch), "n")
    y = te.compute((places,), lambda i: te.sum(x[i + k, n], axis=[k, n]), "y")
    np.testing.assert_array_equal(
        te.evaluate(y, {x: np.ones((6, batch), "float32")}), np.full(places, taps * batch)
    )

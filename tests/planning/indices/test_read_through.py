"""Sums read through tensors that have elements of another one as they are: what is left of the definitions, and values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute
from tests.agreement import check_both_passes

X, W, R = (te.placeholder(s, name=n) for s, n in (((2, 12, 3), "X"), ((4, 3), "W"), ((23, 3), "R")))
k, c = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 3), "c")


def distances() -> te.Tensor:
    at = te.compute((12, 12, 3), lambda i, j, c: R[i - j + 11, c], "at")
    return te.compute((2, 12, 12), lambda b, i, j: te.sum(X[b, i, c] * at[i, j, c], axis=c), "y")


def padded() -> te.Tensor:
    wide = te.compute((2, 15, 3), lambda b, i, c: te.select(i < 3, 0.0, X[b, i - 3, c]), "wide")
    return te.compute((2, 12), lambda b, i: te.sum(wide[b, i + k, c] * W[k, c], axis=[k, c]), "y")


def padded_maxima() -> te.Tensor:
    least = -float("inf")
    wide = te.compute(
        (2, 14, 3), lambda b, i, c: te.select((i > 0) & (i < 13), X[b, i - 1, c], least), "wide"
    )
    return te.compute((2, 11, 3), lambda b, i, c: te.max(wide[b, i + k, c], axis=k), "y")


def patches() -> te.Tensor:
    columns = te.compute((2, 9, 4, 3), lambda b, i, k, c: X[b, i + k, c], "columns")
    return te.compute((2, 9), lambda b, i: te.sum(columns[b, i, k, c] * W[k, c], axis=[k, c]), "y")


def repeated() -> te.Tensor:
    """Quotients hide what a convolution is."""
    twice = te.compute((2, 24, 3), lambda b, i, c: X[b, i // 2, c], "twice")
    return te.compute((2, 21), lambda b, i: te.sum(twice[b, i + k, c] * W[k, c], axis=[k, c]), "y")


def read_elsewhere() -> te.Tensor:
    """A tensor that is needed anyway."""
    wide = te.compute((2, 15, 3), lambda b, i, c: te.select(i < 3, 0.0, X[b, i - 3, c]), "wide")
    return te.compute(
        (2, 12), lambda b, i: te.sum(wide[b, i + k, c] * W[k, c], axis=[k, c]) + wide[b, i, 0], "y"
    )


def around_another_number() -> te.Tensor:
    wide = te.compute((2, 15, 3), lambda b, i, c: te.select(i < 3, 1.0, X[b, i - 3, c]), "wide")
    return te.compute((2, 12), lambda b, i: te.sum(wide[b, i + k, c] * W[k, c], axis=[k, c]), "y")


def names(tensor: te.Tensor) -> list[str]:
    return [t.name for t in topological_order(planned([tensor])) if isinstance(t, Compute)]


@pytest.mark.parametrize("define", [distances, padded, padded_maxima, patches])
def test_sums_read_through(define: Callable[[], te.Tensor], rng: np.random.Generator) -> None:
    assert names(define()) == ["y"]
    check_both_passes(define(), rng)


@pytest.mark.parametrize("define", [repeated, read_elsewhere, around_another_number])
def test_tensors_that_stay(define: Callable[[], te.Tensor], rng: np.random.Generator) -> None:
    assert len(names(define())) > 1
    check_both_passes(define(), rng)


def test_derivatives_that_are_given_stay() -> None:
    wide = te.compute((2, 15, 3), lambda b, i, c: te.select(i < 3, 0.0, X[b, i - 3, c]), "wide")
    assert isinstance(wide, Compute)
    wide.with_override(([X], lambda out, inputs, head: [te.compute(X.shape, lambda *at: 7.0, "dX")]))
    y = te.compute((2, 12), lambda b, i: te.sum(wide[b, i + k, c] * W[k, c], axis=[k, c]), "y")
    assert names(y) == ["wide", "y"]


def test_a_pad_is_the_padding_of_a_convolution() -> None:
    x = te.placeholder((2, 16, 16, 4), name="x")
    w = te.placeholder((3, 3, 4, 8), name="w")
    wide = te.compute(
        (2, 18, 18, 4),
        lambda b, i, j, c: te.select((i > 0) & (i < 17) & (j > 0) & (j < 17), x[b, i - 1, j - 1, c], 0.0),
        "wide",
    )
    p, q, c = (te.reduce_axis((0, n), a) for n, a in ((3, "p"), (3, "q"), (4, "c")))
    y = te.compute(
        (2, 16, 16, 8),
        lambda b, i, j, o: te.sum(wide[b, i + p, j + q, c] * w[p, q, c, o], axis=[p, q, c]),
        "y",
    )
    assert "padding=((1, 1), (1, 1))" in te.source(list(planned([y])))

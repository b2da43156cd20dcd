"""Sums of which a part is read are computed there: what is left of the definitions, values, and points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import jaxte as te
from jaxte.planning.graph import planned
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute
from tests.agreement import check_both_passes

X, W = te.placeholder((2, 35), name="X"), te.placeholder((4,), name="W")
A, B = te.placeholder((8, 6), name="A"), te.placeholder((6, 9), name="B")
k, c, t = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 6), "c"), te.reduce_axis((0, 35), "t")


def decimated() -> te.Tensor:
    whole = te.compute((2, 32), lambda b, i: te.sum(X[b, i + k] * W[k], axis=k), "whole")
    return te.compute((2, 8), lambda b, i: whole[b, 4 * i], "y")


def diagonal() -> te.Tensor:
    whole = te.compute((8, 9), lambda i, j: te.sum(A[i, c] * B[c, j], axis=c), "whole")
    return te.compute((8,), lambda i: te.tanh(whole[i, i]), "y")


def both_ends() -> te.Tensor:
    whole = te.compute((2, 32), lambda b, i: te.sum(X[b, i + k] * W[k], axis=k), "whole")
    return te.compute((2, 4), lambda b, i: whole[b, i] - whole[b, 31 - i], "y")


def most() -> te.Tensor:
    whole = te.compute((2, 32), lambda b, i: te.sum(X[b, i + k] * W[k], axis=k), "whole")
    return te.compute((2, 30), lambda b, i: whole[b, i + 1], "y")


def prefixes() -> te.Tensor:
    """Elements that are made of each other."""
    whole = te.compute((2, 35), lambda b, i: te.sum(X[b, t], axis=t, where=t <= i), "whole")
    return te.compute((2, 7), lambda b, i: whole[b, 5 * i], "y")


def summed() -> te.Tensor:
    whole = te.compute((2, 32), lambda b, i: te.sum(X[b, i + k] * W[k], axis=k), "whole")
    return te.compute((2, 8), lambda b, i: te.sum(whole[b, 4 * i + k], axis=k), "y")


def largest() -> te.Tensor:
    """Extrema have derivatives as tensors of their own."""
    whole = te.compute((2, 32), lambda b, i: te.max(X[b, i + k] * W[k], axis=k), "whole")
    return te.compute((2, 8), lambda b, i: te.tanh(whole[b, 4 * i]), "y")


def count(tensor: te.Tensor) -> int:
    return sum(isinstance(t, Compute) for t in topological_order(planned([tensor])))


@pytest.mark.parametrize("define", [decimated, diagonal, both_ends])
def test_a_part_is_computed_where_it_is_read(
    define: Callable[[], te.Tensor], rng: np.random.Generator
) -> None:
    y = define()
    assert count(y) == 1
    assert te.cost(list(planned([y]))).iterations * 2 < te.cost([y]).iterations
    check_both_passes(y, rng)


@pytest.mark.parametrize("define", [most, prefixes, summed, largest])
def test_sums_that_stay(define: Callable[[], te.Tensor]) -> None:
    assert count(define()) >= 2


def test_extrema_of_which_a_part_is_read(rng: np.random.Generator) -> None:
    check_both_passes(largest(), rng)

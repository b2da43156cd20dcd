"""Reductions are over the points that count in every spelling of their axes and conditions; values and derivatives are those of the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Reduce
from jaxte.planning.conditions.counted_points import at_counted_points, with_tight_axes
from jaxte.tensors.tensor import Compute
from tests.agreement import check_both_passes
from tests.spelled_counts import counts, lowered_tensor

X = te.placeholder((3, 24, 1), name="X")
W = te.placeholder((24,), name="W")
Element = Callable[[Any, Any], te.Expr]


def axis(extent: int, name: str) -> te.Axis:
    return te.reduce_axis((0, extent), name)


k, h, l, c = axis(24, "k"), axis(12, "h"), axis(2, "l"), axis(1, "c")  # noqa: E741
long, later = axis(30, "k"), te.reduce_axis((3, 27), "k")
whole = 2 * h + l

#: the body, and what it is a reduction of
CASES: dict[str, tuple[Element, str]] = {
    "choice of a product": (
        lambda b, i: te.sum(te.select(k // 4 == i, X[b, k, 0] * W[k], 0.0), k),
        "sum(X[b, 4 * i + r, 0] * W[4 * i + r] for r in [0, 4))",
    ),
    "choice of a factor": (
        lambda b, i: te.sum(W[k] * te.select(k // 4 != i, 0.0, X[b, k, 0]), k),
        "sum(W[4 * i + r] * X[b, 4 * i + r, 0] for r in [0, 4))",
    ),
    "digits between bounds": (
        lambda b, i: te.max(X[b, whole, 0], [h, l], where=(whole >= i) & (whole < i + 5) & (l < 2)),
        "max(X[b, i + l, 0] for l in [0, 5))",
    ),
    "ends": (
        lambda b, i: te.min(X[b, long - 2, 0] + W[i], long, where=(long >= 2) & (long < 26)),
        "min(X[b, k, 0] + W[i] for k in [0, 24))",
    ),
    "choice of the least": (
        lambda b, i: te.max(
            te.select(k < i, -float("inf"), te.select(k >= i + 4, -float("inf"), X[b, k, 0])), k
        ),
        "max(X[b, i + k, 0] for k in [0, 4))",
    ),
    "one value": (
        lambda b, i: te.max(X[b, k, c], [k, c], where=(k <= i) & (c >= 0)),
        "max(X[b, k, 0] for k in [0, 24) where k - i <= 0)",
    ),
    "a triangle of products stays a choice": (
        lambda b, i: te.sum(te.select(k <= i, X[b, k, 0] * W[k], 0.0), k),
        "sum(select(k <= i, X[b, k, 0] * W[k], 0.0) for k in [0, 24))",
    ),
    "what may be infinite stays chosen": (
        lambda b, i: te.sum(te.select(k // 4 == i, X[b, k, 0], 0.0) * te.log(W[k]), k),
        "sum(select(k_high - i == 0, X[b, 4 * k_high + k_low, 0], 0.0) * log(W[4 * k_high + k_low]) for k_high in [0, 6), k_low in [0, 4))",
    ),
}


def defined(element: Element) -> Compute:
    found = te.compute((3, 6), element, "y")
    assert isinstance(found, Compute)
    return found


@pytest.mark.parametrize("name", CASES)
def test_reductions_are_over_the_points_that_count(name: str) -> None:
    element, expected = CASES[name]
    y = defined(element)
    assert isinstance(y.body, Reduce)
    _, found = at_counted_points(y.body)
    assert str(found) == expected


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str, rng: np.random.Generator) -> None:
    check_both_passes(defined(CASES[name][0]), rng)


def test_what_a_choice_leaves_out_may_be_infinite() -> None:
    x, w = np.ones((3, 24, 1), "float32"), np.ones(24, "float32")
    w[9] = np.inf
    for name in ("choice of a product", "a triangle of products stays a choice"):
        y = defined(CASES[name][0])
        np.testing.assert_array_equal(te.evaluate([y], {X: x, W: w})[0], te.interpret([y], {X: x, W: w})[0])


def test_winners_by_place_keep_their_axes() -> None:
    y = defined(lambda b, i: te.max(X[b, k, c], [k, c], where=(k <= i) & (k < 20), ties="first"))
    assert isinstance(y.body, Reduce) and with_tight_axes(y.body) is y.body


def test_prefix_of_chosen_products_is_a_scan() -> None:
    chosen = te.compute((3, 24), lambda b, i: te.sum(te.select(k <= i, X[b, k, 0], 0.0) * W[k], k), "y")
    plain = te.compute((3, 24), lambda b, i: te.sum(X[b, k, 0] * W[k], k, where=k <= i), "y")
    assert counts(lowered_tensor([X, W], chosen)) == counts(lowered_tensor([X, W], plain))

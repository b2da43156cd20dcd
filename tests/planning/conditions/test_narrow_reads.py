"""Ends that an index is held at, where a choice keeps it in range already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.planning.conditions.plain_conditions import with_narrow_reads
from jaxte.planning.graph import planned
from jaxte.tensors.tensor import Compute
from tests.agreement import check_both_passes

N = 9
X = te.placeholder((N,), name="X")

#: a body over ``i < 9``, and what its indices are
CASES: dict[str, tuple[Callable[[Any], te.Expr], str]] = {
    "first": (
        lambda i: te.select(i == 0, 0.0, X[te.maximum(i - 1, 0)]),
        "select(i == 0, 0.0, X[i - 1])",
    ),
    "from there on": (
        lambda i: te.select(i >= 3, X[te.maximum(i - 3, 0)] ** 2, 1.0),
        "select(i >= 3, X[i - 3] ** 2, 1.0)",
    ),
    "last": (
        lambda i: te.select(i == N - 1, X[0], te.select(i > 4, X[te.minimum(i + 1, N - 1)], 0.0)),
        "select(i == 8, X[0], select(i > 4, X[i + 1], 0.0))",
    ),
    "held": (
        lambda i: te.select(i < 4, X[te.maximum(i - 4, 0)], X[i]),
        "select(i < 4, X[0], X[i])",
    ),
    "pairs": (
        lambda i: te.select(i % 2 == 1, -X[te.maximum(i - 1, 0)], X[te.minimum(i + 1, N - 2)]),
        "select(i % 2 == 1, -X[i - 1], X[minimum(i + 1, 7)])",
    ),
    "of every third": (
        lambda i: te.select(i // 3 * 3 == i, X[te.minimum(i + 2, N - 1)], X[te.maximum(i - 1, 0)]),
        "select(i // 3 * 3 == i, X[i + 2], X[i - 1])",
    ),
    "halves turned": (
        lambda i: te.select(i < 5, X[(i + 4) % N], X[(i + 4) % N] * X[i // 5]),
        "select(i < 5, X[i + 4], X[i - 5] * X[1])",
    ),
    "a quotient that a choice leaves open": (
        lambda i: te.select(i < 6, X[(i + 4) % N], X[i // 4]),
        "select(i < 6, X[(i + 4) % 9], X[i // 4])",
    ),
    "not reached by the choice": (
        lambda i: te.select(i >= 2, X[te.maximum(i - 3, 0)], 1.0),
        "select(i >= 2, X[maximum(i - 3, 0)], 1.0)",
    ),
}


def defined(name: str) -> Compute:
    found = te.compute((N,), CASES[name][0], "y")
    assert isinstance(found, Compute)
    return found


@pytest.mark.parametrize("name", CASES)
def test_indices(name: str, rng: np.random.Generator) -> None:
    y = defined(name)
    assert str(with_narrow_reads(y.body)) == CASES[name][1]
    check_both_passes(y, rng)


def test_neighbours_of_a_ring_are_rolls() -> None:
    def element(i: Any) -> te.Expr:
        before = te.select(i == 0, X[N - 1], X[te.maximum(i - 1, 0)])
        return X[i] * before + te.select(i == N - 1, X[0], X[te.minimum(i + 1, N - 1)])

    (found,) = planned([te.compute((N,), element, "y")])
    assert isinstance(found, Compute)
    assert str(found.body) == "X[i] * X[(i - 1) % 9] + X[(i + 1) % 9]"


def _over_window(
    element: Callable[[Any, Any], te.Expr], where: Callable[[Any, Any], Any] | None = None
) -> Compute:
    k = te.reduce_axis((-1, 2), "k")

    def summed(i: Any) -> te.Expr:
        return te.sum(element(i, k), axis=k, where=None if where is None else where(i, k))

    found = te.compute((N,), summed, "y")
    assert isinstance(found, Compute)
    return found


#: sums over windows that are held at both ends, and what is left of their bodies
WINDOWS: dict[str, tuple[Callable[[], Compute], str]] = {
    "chosen": (
        lambda: _over_window(
            lambda i, k: te.select(
                (i + k >= 0) & (i + k < N), X[te.minimum(te.maximum(i + k, 0), N - 1)], 0.0
            )
        ),
        "X[i + k]",
    ),
    "where": (
        lambda: _over_window(
            lambda i, k: X[te.minimum(te.maximum(i + k, 0), N - 1)], lambda i, k: (i + k >= 0) & (i + k < N)
        ),
        "X[i + k]",
    ),
    "one end": (
        lambda: _over_window(
            lambda i, k: te.select(i + k >= 0, X[te.minimum(te.maximum(i + k, 0), N - 1)], 0.0)
        ),
        "X[minimum(i + k, 8)]",
    ),
    "not as far": (
        lambda: _over_window(lambda i, k: te.select(i + k >= 0, X[te.maximum(i + k - 1, 0) % N], 0.0)),
        "X[maximum(i + k - 1, 0)",
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_ends_of_windows(name: str, rng: np.random.Generator) -> None:
    y = WINDOWS[name][0]()
    assert WINDOWS[name][1] in str(with_narrow_reads(y.body))
    check_both_passes(y, rng)


def _split(index: Callable[[Any, Any, Any], Any], where: Callable[[Any, Any, Any], Any]) -> Compute:
    """What a span is made of: a part of it, and the rest."""
    k = te.reduce_axis((0, N), "k")

    def summed(i: Any, w: Any) -> te.Expr:
        return te.sum(X[index(i, w, k)] * X[k], axis=k, where=where(i, w, k))

    found = te.compute((N, N), summed, "y")
    assert isinstance(found, Compute)
    return found


#: reads that two conditions keep in range together, and what is left of their indices
TOGETHER: dict[str, tuple[Callable[[], Compute], str]] = {
    "the rest of a span": (
        lambda: _split(lambda i, w, k: te.minimum(i + k + 1, N - 1), lambda i, w, k: (k < w) & (i + w < N)),
        "X[i + k + 1]",
    ),
    "before it": (
        lambda: _split(lambda i, w, k: te.maximum(i - k - 1, 0), lambda i, w, k: (k < w) & (i >= w)),
        "X[i - k - 1]",
    ),
    "by way of its end": (
        lambda: _split(lambda i, w, k: te.minimum(w + k, N - 1), lambda i, w, k: (w + i < N) & (k <= i)),
        "X[w + k]",
    ),
    "one too far": (
        lambda: _split(lambda i, w, k: te.minimum(i + k + 1, N - 1), lambda i, w, k: (k <= w) & (i + w < N)),
        "X[minimum(i + k + 1, 8)]",
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_two_conditions_keep_an_end_from_being_reached(name: str, rng: np.random.Generator) -> None:
    y = TOGETHER[name][0]()
    assert TOGETHER[name][1] in str(with_narrow_reads(y.body))
    check_both_passes(y, rng)

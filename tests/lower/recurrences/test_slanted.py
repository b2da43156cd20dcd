"""Reads along slanted lines of an array in the steps of a loop: slices of the array laid straight, and no gathers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def in_place(steps: Any, A: Any) -> None:
    """A sweep that reads what it has just written; lines of slope 2, several of them at once."""
    n, m = A.shape
    for _t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = (
                    A[i - 1, j + 1] + A[i, j - 1] + A[i, j] + A[i + 1, j] + 0.5 * A[i + 1, j + 1]
                ) / 4.0


def alignment(score: Any) -> Any:
    """The diagonals of a table of scores."""
    n, m = score.shape
    h = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            h[i, j] = np.logaddexp(h[i - 1, j - 1] + score[i - 1, j - 1], h[i - 1, j] + np.tanh(h[i, j - 1]))
    return h


def marked(score: Any, allowed: Any) -> None:
    """A table of truths beside one of numbers."""
    n, m = score.shape
    for i in range(1, n):
        for j in range(1, m):
            if allowed[i, j]:
                score[i, j] += 0.5 * score[i - 1, j] * score[i, j - 1]


CASES: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], list[Any]]]] = {
    "in place": (in_place, lambda rng: [3, rng.normal(size=(6, 7))]),
    "alignment": (alignment, lambda rng: [rng.normal(size=(5, 8))]),
    "truths": (marked, lambda rng: [rng.normal(size=(6, 5)), rng.normal(size=(6, 5)) > 0]),
}


@pytest.mark.parametrize("name", CASES)
def test_slanted_reads_agree_with_numpy_and_differences(name: str) -> None:
    function, make = CASES[name]
    assert_nodes_agree(function, make(np.random.default_rng(2)))


@pytest.mark.parametrize("name", CASES)
def test_slanted_reads_are_slices_of_one_array(name: str) -> None:
    function, make = CASES[name]
    source = te.source(te.loops(function), *make(np.random.default_rng(2)))
    before, step = source.split("def backward(")[0].split("_step(", 1)
    assert "_straight = " in before
    assert "_straight" in step
    assert ".get(" not in source


def test_lines_that_lie_far_apart_are_gathered() -> None:
    def steep(x: Any) -> Any:
        def body(h: Any, t: Any, i: Any) -> Any:
            near, far = te.select(400 * i <= t, x[i, t - 400 * i], 0.0), te.select(i < 2, x[i + 1, t], 0.0)
            return 0.5 * h[t - 1, i] + near + te.select(400 * i <= t, x[i + 1, t - 400 * i], 0.0) + far

        return te.recurrence((30, 3), body, init=0.0)

    x = np.random.default_rng(0).normal(size=(4, 30))
    fn = te.function(steep)
    assert "_straight" not in te.source(fn, x)
    expected, h = np.zeros((30, 3)), np.zeros(3)
    for t in range(30):
        expected[t] = h = 0.5 * h + [x[0, t] + 2 * x[1, t], x[2, t], 0.0]
    np.testing.assert_allclose(fn(x), expected)


def test_arrays_of_sizes_that_are_symbols_are_gathered_from() -> None:
    n = te.var("n")
    x = te.placeholder((n, n), "float64", name="x")
    h = te.recurrence((n, n), lambda h, t, i: h[t - 1, i] + te.select(i <= t, x[i, t - i], 0.0), init=0.0)
    fn = te.function([x], [h])
    given = np.random.default_rng(0).normal(size=(4, 4))
    expected = np.cumsum([[given[i, t - i] if i <= t else 0.0 for i in range(4)] for t in range(4)], axis=0)
    found = fn(given)
    np.testing.assert_allclose(found[0] if isinstance(found, (tuple, list)) else found, expected)

"""Tables of intervals, from the shortest to the longest: steps along ``j - i`` under ``te.loops``."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from npbench.kernels import nussinov
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def palindromes(x):
    """Soft lengths: each reads the interval without its ends."""
    n = len(x)
    best = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        best[i, i] = 1.0
        for j in range(i + 1, n):
            best[i, j] = (
                np.logaddexp(best[i + 1, j], best[i, j - 1])
                + np.exp(-((x[i] - x[j]) ** 2)) * best[i + 1, j - 1]
            )
    return best


def bracketings(p):
    """The least cost of products of matrices."""
    n = len(p) - 1
    cost = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            cost[i, j] = 1e9
            for k in range(i, j):
                cost[i, j] = min(cost[i, j], cost[i, k] + cost[k + 1, j] + p[i] * p[k + 1] * p[j + 1])
    return cost[0, n - 1]


def weights(x, w):
    """Sums over all ways to cut."""
    n = len(x)
    inside = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        inside[i, i] = x[i]
        for j in range(i + 1, n):
            for k in range(i, j):
                inside[i, j] += w[j - i] * inside[i, k] * inside[k + 1, j]
    return inside


CASES = {
    "nussinov": (nussinov, [(6, 6)]),
    "palindromes": (palindromes, [(6,)]),
    "bracketings": (bracketings, [(6,)]),
    "weights": (weights, [(5,), (5,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_tables_of_intervals_agree_with_numpy_and_with_differences(name: str) -> None:
    fn, shapes = CASES[name]
    rng = np.random.default_rng(4)
    assert_nodes_agree(fn, [rng.uniform(0.5, 1.5, size=s) for s in shapes])


@pytest.mark.parametrize("name", CASES)
def test_a_step_is_all_intervals_of_one_length(name: str) -> None:
    fn, shapes = CASES[name]
    forward = te.source(te.loops(fn), *(np.ones(s) for s in shapes)).split("def backward(")[0]
    assert "turn = " not in forward  # as where each iteration is counted
    assert forward.split("def forward_with_residuals(")[-1].count("lax.scan(") == 1

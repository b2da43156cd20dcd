"""What the search for clocks finds, and how often it asks isl: once for what several readings of a program, and several candidates, have in common."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.frontends.loops.equations import edges, flows
from jaxte.sets.domain import IntegerSet
from npbench.applications import ludcmp
from npbench.kernels import nussinov
from tests.loops.agreement import assert_nodes_agree


def paths_but_to_itself(d):
    for k in range(5):
        for i in range(5):
            for j in range(5):
                if k != i:
                    d[i, j] = min(d[i, j], d[i, k] + d[k, j] + 10)
    return d


def chain_of_products(p):
    m = np.zeros((5, 5))
    for length in range(2, 6):
        for i in range(6 - length):
            j = i + length - 1
            m[i, j] = 1e9
            for k in range(i, j):
                m[i, j] = min(m[i, j], m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1])
    return m[0, 4]


@pytest.mark.parametrize(
    "fn, shape, sets, maxima",
    [(paths_but_to_itself, (5, 5), 20, 180), (chain_of_products, (6,), 8, 25), (nussinov, (6, 6), 12, 30)],
)
def test_what_readings_have_in_common_is_asked_once(monkeypatch, fn, shape, sets, maxima) -> None:
    asked = {"sets": 0, "maxima": 0}

    class Counted(IntegerSet):
        def __init__(self, *args, **kwargs):
            asked["sets"] += 1
            super().__init__(*args, **kwargs)

        def maximum(self, expr):
            asked["maxima"] += 1
            return super().maximum(expr)

    monkeypatch.setattr(edges, "IntegerSet", Counted)
    te.loops(fn).builder(te.placeholder(shape, name="x", dtype="float64"))
    assert 0 < asked["sets"] <= sets and 0 < asked["maxima"] <= maxima


def test_the_flow_of_an_array_is_asked_again_only_where_its_writes_are_others(monkeypatch) -> None:
    """Two readings, of 44 reads in all: sums that are leaner than the writes would be are not read as those."""
    asked = []

    class Counted(flows.Flow):
        def __init__(self, reads, writes, additions):
            asked.extend(reads)
            super().__init__(reads, writes, additions)

    monkeypatch.setattr(flows, "Flow", Counted)
    te.loops(ludcmp).builder(te.placeholder((8, 8), name="A"), te.placeholder((8,), name="b"))
    assert 0 < len(asked) <= 22


def sum_and_mirrored_choice(x, v, A):
    """All that is added to ``x[0]`` is a sum with a clock; ``x[n - 1 - k]`` of the same additions has none."""
    n = x.shape[0]
    for k in range(n - 1):
        for _ in range(3):
            if A[k, k + 1] > 0.1:
                x[k] += 0.7 * x[0]
        if x[n - 1 - k] > 0.1:
            x[k + 1] += x[k + 1] * v[0]
        else:
            A[k, k + 1] -= np.sin(x[n - 1 - k])
    for k in range(n):
        A[k, k] = v[0] * A[n - 1 - k, k]
    return x, A


def test_what_stays_a_sum_for_one_block_is_a_write_where_another_has_no_clock(x64, rng) -> None:
    arrays = rng.normal(size=6), rng.normal(size=2), rng.normal(size=(6, 6))
    assert_nodes_agree(sum_and_mirrored_choice, arrays)

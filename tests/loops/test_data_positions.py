"""Positions that are data or states of the loop, of arrays that the loop itself writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def delay_line(x, gain):
    line, y, p = np.zeros(4), np.zeros(11), 0
    for n in range(11):
        out = line[p]
        line[p] = x[n] + gain[0] * out
        y[n] = out + x[n]
        p = (p + 1) % 4
    return y


def running_means(x, label):
    mean, count = np.zeros((3, 2)), np.zeros(3)
    for i in range(6):
        k = label[i]
        count[k] += 1
        for d in range(2):
            mean[k, d] += (x[i, d] - mean[k, d]) / count[k]
    return mean


def stack(x, pushes):
    held, top = np.zeros(5), 0
    for i in range(7):
        if pushes[i] == 1:
            held[top] = x[i]
            top += 1
        else:
            top -= 1
            held[0] = held[0] + held[top] * x[i]
    return held[0]


def pivoted(a, b):
    for k in range(2):
        p = k
        for i in range(k + 1, 3):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        for j in range(3):
            t = a[k, j]
            a[k, j] = a[p, j]
            a[p, j] = t
        t = b[k]
        b[k] = b[p]
        b[p] = t
        for i in range(k + 1, 3):
            f = a[i, k] / a[k, k]
            for j in range(k, 3):
                a[i, j] -= f * a[k, j]
            b[i] -= f * b[k]
    return a, b


CASES: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], list[np.ndarray]]]] = {
    "delay line": (delay_line, lambda rng: [rng.normal(size=11), rng.normal(size=1)]),
    "running means": (running_means, lambda rng: [rng.normal(size=(6, 2)), np.array([0, 2, 1, 0, 0, 2])]),
    "stack": (stack, lambda rng: [rng.normal(size=7), np.array([1, 1, 1, 0, 1, 0, 0])]),
    "pivots": (pivoted, lambda rng: [rng.normal(size=(3, 3)), rng.normal(size=3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_read_at_a_state_has_the_clock_of_what_was_written(name: str, rng: np.random.Generator) -> None:
    """The read is another one once the position within it is a tensor: such programs ended with an error of an empty minimum."""
    fn, arguments = CASES[name]
    assert_nodes_agree(fn, arguments(rng))

"""Names that change arrays from one iteration to the next: buffers that rotate, some of them made anew in each."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def waves(u):
    """The step before, the present one, and one that is made."""
    before, now = u.copy(), np.cos(u)
    for _t in range(3):
        new = np.zeros((6, 5))
        for i in range(1, 5):
            for j in range(1, 4):
                new[i, j] = 2 * now[i, j] - before[i, j] + 0.2 * np.sin(now[i + 1, j] + now[i, j - 1])
        before, now = now, new
    return now


def waves_in_sequence(u):
    before, now = u.copy(), np.cos(u)
    for _t in range(3):
        new = np.empty((6, 5))
        new[...] = now
        new[1:-1, 1:-1] = 2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.2 * np.sin(now[2:, 1:-1])
        before = now
        now = new
    return before, now


def three_levels(u):
    a, b, c = u * 1.0, u[::-1] * 0.5, np.cos(u)
    for _t in range(4):
        d = np.tanh(a + 0.5 * b * c)
        a, b, c = b, c, d
    return a + 2 * b - c


def circulating(u):
    a, b, c = u * 1.0, u[::-1] * 0.5, np.ones((6, 5))
    for _t in range(5):
        c[1:] = 0.5 * a[:-1] + 0.3 * b[1:] * a[1:]
        a, b, c = b, c, a
    return a + 2 * b - c


@pytest.mark.parametrize("fn", [waves, waves_in_sequence, three_levels, circulating])
def test_buffers_that_rotate_agree_with_numpy_and_with_differences(fn) -> None:
    assert_nodes_agree(fn, [np.random.default_rng(0).normal(size=(6, 5))])


def test_a_loop_hands_on_the_steps_that_it_reads_and_no_buffer() -> None:
    source = te.source(te.loops(waves), np.ones((6, 5), "float32")).split("def forward_with_residuals")[0]
    assert "now_before, before_before = before\n" in source
    assert (
        "where(t" not in source
    )  # whether there is a step before: the loop begins with the arrays, which are read at places beside the element


def both_used(u):
    a, b = u * 1.0, u * 2.0
    for _t in range(3):
        c = a + b
        a, b = b, c
        c[0] = 1.0
    return a, b


def read_later(u):
    a, b = u * 1.0, u * 2.0
    for _t in range(3):
        row = b[0]
        c = a + b
        a = b
        b = c
        row[0] = 3.0
    return a, b


def twice(u):
    a, b = u * 1.0, u * 2.0
    for _t in range(3):
        c = a + b
        a, b = c, c
        a[0] = 1.0
    return a, b


@pytest.mark.parametrize("fn", [both_used, read_later, twice])
def test_two_names_of_one_array_are_refused(fn) -> None:
    with pytest.raises(te.DefinitionError, match="stands for another object within a loop"):
        te.loops(fn)(np.ones((6, 5)))

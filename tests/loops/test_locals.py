"""Local numbers of loops within a branch on data: each iteration sets them, so that nothing asks what they were where the branch is not taken."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def exchanged(a, b):
    for t in range(3):
        if a[t] > b[t]:
            for i in range(6):
                s = a[i]
                a[i] = b[i]
                b[i] = s * 0.9
        for i in range(1, 6):
            a[i] += 0.3 * b[i - 1]
    return a, b


def nested(x, y):
    out = np.zeros(6)
    for i in range(6):
        if x[i] > 0.9:
            u, v = x[i], y[i]
            for _k in range(3):
                w = u * v
                if w > 0.1:
                    for j in range(2):
                        z = w * 0.5 + out[j]
                        u = u + 0.1 * z
                v = 0.9 * v
            out[i] = u - v
    return out


def until_settled(b, A):
    """Sweeps that end when little changes: a step of the outer loop has a loop over rows, and keeps no iteration of that."""
    x, error, sweep = np.zeros(5), 1.0, 0
    while error > 1e-2 and sweep < 5:
        error = 0.0
        for i in range(5):
            s = b[i]
            for j in range(5):
                if j != i:
                    s -= 0.1 * A[i, j] * x[j]
            d = s / (A[i, i] + 1) - x[i]
            x[i] += d
            error += d * d
        sweep += 1
    return x


@pytest.mark.parametrize("fn", [exchanged, nested, until_settled])
def test_locals_of_loops_in_branches_agree_with_numpy_and_with_differences(fn) -> None:
    rng = np.random.default_rng(0)
    shapes = [(5,), (5, 5)] if fn is until_settled else [(6,), (6,)]
    assert_nodes_agree(fn, [rng.uniform(0.5, 1.5, size=s) for s in shapes])


def test_an_addition_of_all_sweeps_is_a_state_and_those_of_one_are_sums() -> None:
    source = te.source(te.loops(until_settled), np.ones(5, "float32"), np.ones((5, 5), "float32"))
    forward = source.split("def forward_with_residuals")[0]
    assert "turn = " not in forward  # as where each iteration is a step
    assert forward.count("lax.scan(") == 2


def kept_by_chance(x):
    total = 0.0
    for t in range(6):
        if x[t] > 1:
            for k in range(t):
                q = x[k]
            total += q
    return total


def test_what_a_loop_without_iterations_leaves_is_asked_for() -> None:
    with pytest.raises(te.DefinitionError, match="q is written at t = 1, k = 0 only where a condition"):
        te.loops(kept_by_chance)(np.ones(6))


def one_name_in_several_branches(x, y):
    """``z`` is a number of its own in each branch, at another depth in the last."""
    total = 0.0
    for i in range(6):
        if x[i] > 1:
            z = x[i] * y[i]
            z = z if z > 1 else 0.2 * z
            total = max(total, z)
    for i in range(6):
        if x[i] > 0.8:
            z = np.exp(x[i] - total)
            total += z * y[i]
            if y[i] > 1:
                z = y[i] ** 2
                total *= z
    if x[0] > y[0]:
        if x[1] > y[1] or x[2] > y[2]:
            z = x * y
            total += z[0] * z[1]
    return total


def set_again_within_a_branch(x, y):
    """What the branch leaves is read behind it, and ``z`` is a number of its own in another loop."""
    total = 0.0
    for i in range(6):
        z = 0.5 * y[i]
        if x[i] > 1:
            z = x[i] * 2
            total += z * y[i]
        total += z * z
    for i in range(6):
        if y[i] > 1:
            z = x[i] * y[i]
            total += z
    return total


def set_by_one_branch_and_added_to_by_the_other(x, y):
    total, z = 0.0, y[0]
    for i in range(6):
        if x[i] > 1:
            z = x[i] * y[i]
        else:
            z += y[i]
        total += z * z
    return total


def an_array_of_both_branches(x, y):
    if x[0] > y[0]:
        z = x * y
    else:
        z = x - y
    w = z[::-1].copy()
    w[1:] -= z[:-1] ** 2
    return w


@pytest.mark.parametrize(
    "fn",
    [
        one_name_in_several_branches,
        set_again_within_a_branch,
        set_by_one_branch_and_added_to_by_the_other,
        an_array_of_both_branches,
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_names_that_branches_set_first_agree_with_numpy_and_with_differences(fn, seed) -> None:
    rng = np.random.default_rng(seed)
    assert_nodes_agree(fn, [rng.uniform(0.5, 1.5, size=6), rng.uniform(0.5, 1.5, size=6)])


def set_by_one_branch_at_some_positions(x):
    total = 0.0
    for i in range(6):
        if x[i] > 0:
            if i > 2:
                z = 1.0
        else:
            z = 2.0
        total += z
    return total


def reads_what_another_branch_left(x):
    total = 0.0
    if x[0] > 0:
        z = x[0]
        total += z
    for i in range(1, 6):
        if x[i] > 0:
            total += z
            z = x[i]
    return total


def doubles_what_another_branch_left(x):
    total = 0.0
    if x[0] > 0:
        z = x[0]
        total += z
    if x[1] > 0:
        z = z * 2
        total += z
    return total


def adds_where_the_other_branch_sets(x):
    total = 0.0
    for i in range(6):
        if x[i] > 0:
            z = 1.0
        else:
            z += 2.0
        total += z
    return total


@pytest.mark.parametrize("fn", [set_by_one_branch_at_some_positions, reads_what_another_branch_left])
def test_what_branches_may_leave_without_a_value_is_refused(fn) -> None:
    with pytest.raises(te.DefinitionError, match="give it a value before the if"):
        te.loops(fn)(np.ones(6))


@pytest.mark.parametrize("fn", [doubles_what_another_branch_left, adds_where_the_other_branch_sets])
def test_what_is_read_before_a_branch_gave_it_a_value_is_refused(fn) -> None:
    with pytest.raises(
        te.DefinitionError,
        match=r"was never written before; give it a value first|give it a value before the if",
    ):
        te.loops(fn)(np.ones(6))

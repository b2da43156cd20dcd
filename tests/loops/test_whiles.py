"""``while`` loops that count: what they have counted to is read behind them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.loops.agreement import assert_nodes_agree

pytestmark = pytest.mark.usefixtures("x64")


def halvings(x):
    out = np.zeros(7)
    for i in range(7):
        v, n = x[i] * 3, 0
        while v > 0.5 and n < 6:
            v = v / 2 if v > 1 else v * 0.4
            n += 1
        out[i] = v + n * x[i]
    return out


def roots(a, x):
    """The counter is a position within the loop, and a number behind it; the bound itself is taken."""
    y, count = np.zeros(3), np.zeros(3)
    for i in range(3):
        n, z = 1, a[i]
        while abs(z * z - a[i]) > 1e-3 and n <= 5:
            z = 0.5 * (z + a[i] / z) + 0.01 * x[n]
            n += 1
        y[i] = z * n
        count[i] = n
    return y, count


def downwards(a, x):
    s = 0.0
    for i in range(3):
        n, z = 7, a[i]
        while n > 2 and z < 3:
            if z > 2.5:
                break
            z = z * 1.5
            n -= 2
        s += z * n
    return s + x[0]


@pytest.mark.parametrize(("fn", "shapes"), [(halvings, [7]), (roots, [3, 6]), (downwards, [3, 6])])
def test_a_counter_is_read_behind_its_loop(fn, shapes) -> None:
    rng = np.random.default_rng(5)
    assert_nodes_agree(fn, [rng.uniform(0.5, 1.5, size=n) for n in shapes])

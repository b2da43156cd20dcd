"""The first point at which conditions hold, found one by one: beside all points, and where all of them would be too many."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from jaxte.sets.tabulate import evaluate_index, first_of


def conditions(axes: list[Axis], rng: np.random.Generator) -> list[Expr]:
    """Some on one axis, some on two, some on none that hold or do not."""
    found: list[Expr] = []
    for _ in range(int(rng.integers(1, 5))):
        a, b = (axes[int(n)] for n in rng.integers(0, len(axes), 2))
        k, m = (int(n) for n in rng.integers(1, 4, 2))
        found.append(
            [(a - b) // k >= m, (a + m) % (k + 1) < k, a * k + b <= 4 * m, a >= m, te.equal(a % 2, b % 2)][
                int(rng.integers(5))
            ]
        )
    return found


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_first_of_all_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = [
        Axis(n, int(low), int(low) + int(rng.integers(1, 5)))
        for n, low in zip("abcd", rng.integers(0, 3, 4), strict=True)
    ]
    held = conditions(axes, rng)
    ranges = [range(int(str(a.lo)), int(str(a.hi))) for a in axes]
    points = (dict(zip(axes, p, strict=True)) for p in product(*ranges))
    first = next((p for p in points if all(evaluate_index(c, p) for c in held)), None)
    assert first_of(axes, held) == first


def test_axes_that_nothing_ties_are_looked_at_by_themselves() -> None:
    axes = [te.reduce_axis((0, 1000), n) for n in "abcdef"]
    held = [te.equal(x % 7, y % 5) for x, y in zip(axes[::2], axes[1::2], strict=True)]
    found = first_of(axes, [*held, axes[2] >= 998])
    assert found is not None and [found[a] for a in axes] == [0, 0, 998, 4, 0, 0]
    assert first_of(axes, [*held, axes[5] >= 1000]) is None


def test_a_transposed_convolution_of_three_dimensions_is_found_to_stay_inside() -> None:
    """Of 161 x 161 x 161 x 27 points, which are too many to look at together."""
    n = 80
    x, w = te.placeholder((n, n, n), name="x"), te.placeholder((3, 3, 3), name="w")
    taps = [te.reduce_axis((0, 3), name) for name in "pqr"]

    def element(*at: Expr) -> Expr:
        moved = [a - k for a, k in zip(at, taps, strict=True)]
        inside = [part for m in moved for part in (te.equal(m % 2, 0), m >= 0, m < 2 * n)]
        where = inside[0]
        for part in inside[1:]:
            where = where & part
        return te.sum(x[tuple(m // 2 for m in moved)] * w[tuple(taps)], axis=taps, where=where)

    y = te.compute((2 * n + 1,) * 3, element, "y")
    assert y.shape == (161, 161, 161)

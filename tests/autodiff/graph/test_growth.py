"""The cheap gradient principle on random definitions: an adjoint takes at most five times the points of its definition.

Of thousands one in some hundred exceeds it, by a half at most.
"""

from __future__ import annotations

import pytest

import jaxte as te
from tests.choices import Seeded
from tests.points import excess
from tests.random_definitions import definition

pytestmark = pytest.mark.slow


def test_points_of_adjoints() -> None:
    found = []
    for seed in range(150):
        d = definition(Seeded(seed))
        head = te.placeholder(d.output.shape, d.output.dtype, "H")
        found.append(
            excess(d.output, list(te.differentiate(d.output, d.variables, head)) if d.variables else [])
        )
    beyond = [e for e in found if e > 1]
    assert len(beyond) <= 0.01 * len(found) and max(found) < 2, sorted(beyond)


def test_points_of_a_reduction_behind_a_condition_of_another_axis() -> None:
    """Prefixes are one pass each, whatever else keeps elements out."""
    x, k = te.placeholder((3, 20), name="x"), te.reduce_axis((0, 20), "k")
    y = te.compute((3,), lambda i: te.prod(te.sin(x[i, k]), axis=k, where=~(k % 3 < i) | (i > 1)), "y")
    head = te.placeholder((3,), name="H")
    (dx,) = te.differentiate(y, [x], head)
    assert excess(y, [dx]) <= 1, te.definitions(dx)


@pytest.mark.parametrize("n", [8, 32])
def test_windows_and_products_grow_as_their_definitions(n: int) -> None:
    """No n**3 beside n**2, whether the window is a range or a condition."""
    x, k = te.placeholder((n,), name="x"), te.reduce_axis((0, n), "k")
    near = lambda i: (k <= i + 1) & (k >= i - 1)  # noqa: E731
    add = te.comm_reducer(lambda p, q: p + q + p * q, lambda t: te.const(0.0, t), name="circle")
    head = te.placeholder((n,), name="H")
    for reduce in (te.prod, add, te.max, te.sum):
        y = te.compute((n,), lambda i, r=reduce: r(te.sin(x[k]), axis=k, where=near(i)), "y")
        (dx,) = te.differentiate(y, [x], head)
        assert te.cost([dx]).iterations <= 5 * te.cost([y]).iterations, te.definitions(dx)

"""The cheap gradient principle on random definitions: an adjoint takes at most five times the points of its definition.

What exceeds that are sums in which one factor could be added up over some axes before it meets the others; a planner of contractions
is to find these.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

import jaxte as te
from tests.points import excess
from tests.random_definitions import Definition, definitions

pytestmark = pytest.mark.slow


def test_points_of_adjoints() -> None:
    found: list[float] = []

    @seed(3)
    @settings(
        max_examples=300,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(definitions(stages=(1, 3)))
    def every(definition: Definition) -> None:
        head = te.placeholder(definition.output.shape, definition.output.dtype, "H")
        adjoints = (
            te.differentiate(definition.output, definition.variables, head) if definition.variables else []
        )
        found.append(excess(definition.output, list(adjoints)))

    every()
    beyond = [e for e in found if e > 1]
    assert len(beyond) <= 0.01 * len(found) and max(found) < 10, sorted(beyond)


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

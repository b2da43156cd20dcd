"""The law of cheap gradients on random definitions: an adjoint takes at most five times the points of its definition.

``python -m tests.volume 20000 --kind law`` counts those of 20,000 programs.
"""

from __future__ import annotations

import pytest
from hypothesis import given

import jaxte as te
from tests.points import excess
from tests.random_definitions import Definition, definitions
from tests.test_random_definitions import examples
from tests.volume import law

pytestmark = pytest.mark.slow


@examples(quick=100, full=20000)
@given(definition=definitions())
def test_points_of_adjoints(definition: Definition) -> None:
    law(definition)


@examples(quick=15, full=2000)
@given(definition=definitions(stages=(1, 1)))
def test_points_of_second_adjoints(definition: Definition) -> None:
    law(definition, order=2)


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

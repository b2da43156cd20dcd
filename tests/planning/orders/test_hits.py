"""What is known of an extremum: which elements may be it."""

from __future__ import annotations

import pytest

import jaxte as te
from jaxte.lang.expr import Axis
from jaxte.planning.orders.hits import attains


@pytest.mark.parametrize(("tap", "known"), [(-1, None), (0, "max"), (2, "max"), (3, None)])
def test_elements_beside_a_window_are_none_of_it(tap: int, known: str | None) -> None:
    x, k = te.placeholder((20,), name="x"), te.reduce_axis((0, 3), "k")
    best = te.compute((16,), lambda i: te.max(x[i + 1 + k], axis=k), "best")
    i = Axis("i", 0, 16)
    assert attains(best[i], x[i + 1 + tap], [i], []) == known

"""Divisions that the range of an axis decides have the values that they have without it, wherever the range begins."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis
from jaxte.sets.resolved import simplify
from jaxte.sets.tabulate import values_at


@pytest.mark.parametrize("first", [-5, -2, 0, 1, 4])
@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 9])
def test_values_over_the_whole_range(first: int, count: int) -> None:
    """Over -2, -1, 0 and 1, (r + 1) // 2 was taken for r, which it is at 0 and 1: the adjoint below read beyond its head."""
    r = Axis("r", first, first + count)
    at = np.arange(first, first + count)
    for factor in (1, 2, 3):
        for added in range(-3, 4):
            for divisor in (2, 3, 4, 6):
                for node in ((factor * r + added) // divisor, (factor * r + added) % divisor):
                    expected = values_at(node, {r: at})
                    np.testing.assert_array_equal(
                        np.broadcast_to(values_at(simplify(node, {}), {r: at}), at.shape), expected
                    )


def test_adjoint_of_a_read_at_a_quotient_that_goes_around() -> None:
    X, H = te.placeholder((4,), name="X"), te.placeholder((13,), name="H")
    y = te.compute((13,), lambda i: X[5 * i // 2 % 4], "y")
    head = np.arange(1, 14, dtype="float32")
    expected = np.zeros(4, "float32")
    np.add.at(expected, 5 * np.arange(13) // 2 % 4, head)
    (dX,) = te.differentiate(y, [X], H)
    np.testing.assert_allclose(te.interpret(dX, {H: head}), expected)
    np.testing.assert_allclose(te.evaluate(dX, {H: head}), expected)

"""Values of what is computed of positions, beside Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.sets.tabulate import tabulated


def test_products_and_powers_are_those_of_integers() -> None:
    i, j = te.reduce_axis((-3, 4), "i"), te.reduce_axis((0, 5), "j")
    at = {i: np.arange(-3, 4)[:, None], j: np.arange(5)}
    found = tabulated(i * (i + 1) // 2 + te.square(j) - i**3, at)
    assert found is not None
    expected = [[a * (a + 1) // 2 + b * b - a**3 for b in range(5)] for a in range(-3, 4)]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "bool"])
def test_casts_that_change_positions_are_not_looked_through(dtype: str) -> None:
    i = te.reduce_axis((0, 20), "i")
    assert tabulated(te.cast(20 * i, dtype), {i: np.arange(20)}) is None
    wide = tabulated(te.cast(20 * i, "int32"), {i: np.arange(20)})
    assert wide is not None
    np.testing.assert_array_equal(wide, 20 * np.arange(20))

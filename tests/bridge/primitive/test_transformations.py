"""The grid of tests/transformations in short: each transformation on one of the functions, each function under some.

`make transformations` runs all of it and writes docs/transformations.md.
"""

import pytest

from tests.transformations.catalogue import COLUMNS, Column
from tests.transformations.functions import ROWS, Row
from tests.transformations.grid import cell


def short() -> list:
    """The first row from the one at hand that the column has something to do for; 5 and 12 share no divisor, so all rows come up."""
    found = []
    for n, column in enumerate(COLUMNS[:-1]):
        rows = [ROWS[(5 * n + k) % len(ROWS)] for k in range(len(ROWS))]
        row = next(r for r in rows if not column.needs or getattr(r, column.needs))
        found.append(pytest.param(row, column, id=f"{column.name}-{row.name}"))
    return found


@pytest.mark.parametrize(("row", "column"), short())
def test_as_plain_jax(row: Row, column: Column) -> None:
    assert cell(row, column) == ""


@pytest.mark.parametrize("name", ["max_pool", "stencil", "dense"])
def test_derivatives_to_the_third_order_against_finite_differences(name: str) -> None:
    row = next(r for r in ROWS if r.name == name)
    assert cell(row, COLUMNS[-1]) == ""

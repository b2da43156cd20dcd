"""A matrix times a vector along its rows: a product of columns, or one sum, where the matrix is computed, and a call where it exists."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te

N, M = 4096, 8


def scaled(x: te.Tensor, y: te.Tensor, r: te.Tensor) -> te.Tensor:
    """z[c] = sum over i of x[i, c] * y[i, c] * r[i]"""
    i = te.reduce_axis((0, N), "i")
    return te.compute((M,), lambda c: te.sum(x[i, c] * y[i, c] * r[i], axis=i), "z")


def inputs() -> list[te.Tensor]:
    return [
        te.placeholder((N, M), name="x"),
        te.placeholder((N, M), name="y"),
        te.placeholder((N,), name="r"),
    ]


def test_a_product_is_one_of_columns() -> None:
    code = str(te.source(scaled(*inputs())))
    assert '"ic,ic->c", x, y * r[:, None]' in code and code.count("einsum") == 1


def test_one_matrix_that_is_computed_is_one_sum() -> None:
    x, _, r = inputs()
    i = te.reduce_axis((0, N), "i")
    code = str(te.source(te.compute((M,), lambda c: te.sum(te.abs(x[i, c]) * r[i], axis=i), "z")))
    assert "jnp.sum(" in code and "einsum" not in code


def test_what_exists_is_left_to_the_call() -> None:
    x, _, r = inputs()
    i = te.reduce_axis((0, N), "i")
    z = te.compute((M,), lambda c: te.sum(x[i, c] * r[i], axis=i), "z")
    assert "einsum" in str(te.source(z))


def test_sums_along_rows_stay_calls() -> None:
    x, y, _ = inputs()
    c, w = te.reduce_axis((0, M), "c"), te.placeholder((M,), name="w")
    z = te.compute((N,), lambda i: te.sum(x[i, c] * y[i, c] * w[c], axis=c), "z")
    assert "einsum" in str(te.source(z))


@pytest.mark.parametrize("rows", [N, 5003])
@pytest.mark.parametrize("columns", [3, M, 64])
def test_thousands_of_rows_are_added_up_in_blocks(rows: int, columns: int) -> None:
    """One row after the other, 6 to 25 units in the last place are lost."""
    rng = np.random.default_rng(rows + columns)
    x, y = (rng.uniform(0.5, 1, (rows, columns)).astype("float32") for _ in range(2))
    r = rng.uniform(0.5, 1, rows).astype("float32")
    i = te.reduce_axis((0, rows), "i")
    z = te.function(
        lambda x, y, r: te.compute((columns,), lambda c: te.sum(x[i, c] * y[i, c] * r[i], axis=i), "z")
    )
    exact = (x.astype("float64") * y * r[:, None]).sum(0)
    assert np.abs(np.asarray(z(x, y, r), "float64") - exact).max() <= 4 * 2.0**-23 * np.abs(exact).max()


def test_functions_that_take_long_are_computed_once_for_sums_along_both_axes() -> None:
    """Calls along rows and along columns read one array; two sums would compute tanh of all pairs twice."""
    x, y, j = (
        te.placeholder((300,), name="x"),
        te.placeholder((300,), name="y"),
        te.reduce_axis((0, 300), "j"),
    )
    c = te.compute((300,), lambda i: te.sum(te.tanh(x[i] - x[j]) * te.tanh(y[i] - y[j]), axis=j), "c")
    text = te.source(te.differentiate(c, [x, y], te.placeholder((300,), name="H")))
    assert text.count("jnp.einsum(") == 2 and "optimization_barrier" not in text

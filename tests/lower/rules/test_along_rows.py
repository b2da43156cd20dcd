"""A matrix times a vector along its rows: one sum where the matrix is computed, which XLA on the CPU adds up in blocks, and a call where it exists."""

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


def test_what_is_computed_is_one_sum() -> None:
    code = str(te.source(scaled(*inputs())))
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


@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_rows_are_no_further_off_than_one_after_the_other(seed: int) -> None:
    """How far off is the processor's matter: 2 to 20 units in the last place, by how many rows its vectors add up side by side."""
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(0.5, 1, (N, M)).astype("float32") for _ in range(2))
    r = rng.uniform(0.5, 1, N).astype("float32")
    exact = (x.astype("float64") * y * r[:, None]).sum(0)
    in_turn = np.cumsum(x * y * r[:, None], axis=0, dtype="float32")[-1]
    own = np.asarray(te.function(scaled)(x, y, r), "float64")
    unit = 2.0**-23 * np.abs(exact).max()
    assert np.abs(own - exact).max() <= np.abs(in_turn - exact).max() + 4 * unit


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

"""Powers in quarters, and terms with a factor in common: what is written, and that it has the same value."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Const
from jaxte.lang.walk import postorder
from jaxte.lower.rewrites.hoist import with_narrow_factors_first
from jaxte.lower.rewrites.table import root_power
from tests.lowered import check, program_of, run, sources

X = te.placeholder((4, 9), name="X")


@pytest.mark.parametrize("exponent", [0.25, 0.5, 0.75, 1.25, 1.75, 2.5, 2.75, -0.25, -0.5, -0.75, -1.5, -2.5])
def test_powers_in_quarters_are_roots(exponent: float) -> None:
    Y = te.compute((4, 9), lambda i, j: (X[i, j] * X[i, j] + 0.5) ** exponent, "Y")
    source = "\n".join(check(Y, tolerance=1e-5))
    assert "**" not in source and "sqrt(" in source
    Z = te.compute((5,), lambda i: te.placeholder((5,), name="V")[i] ** exponent, "Z")
    edges = np.array([0.0, np.inf, -1.0, np.nan, 1e-20], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run(program_of(Z), [edges])[0], edges ** np.float32(exponent), rtol=1e-5)


@pytest.mark.parametrize("exponent", [2.0, 0.3, 3, 3.25])
def test_other_powers_stay(exponent: float) -> None:
    Y = te.compute((4, 9), lambda i, j: X[i, j] ** exponent, "Y")
    assert root_power(Y.body) is None
    assert not any("sqrt(" in source for source in sources(Y))


def test_terms_with_a_factor_in_common() -> None:
    S, k = te.placeholder((7,), name="S"), te.reduce_axis((0, 3), "k")
    check(te.compute((4, 7), lambda i, j: te.sum(X[i, j + k] * S[j] + X[i, j + k] * S[j], axis=k), "Y"))
    check(
        te.compute((4, 7), lambda i, j: te.sum(X[i, j + k] / S[j] - te.exp(X[i, j + k]) / S[j], axis=k), "Y")
    )
    check(te.compute((4, 7), lambda i, j: te.sum(X[i, j + k] * S[j] + X[i, j + k] * X[i, j], axis=k), "T"))


def _with_ends(first: int, last: int) -> te.Tensor:
    """What is everywhere, and more at the first and the last positions."""
    S, T = te.placeholder((9,), name="S"), te.placeholder((9,), name="T")

    def ends(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.select(j < first, te.exp(S[i]), 0.0) + X[i, j] + te.select(j >= 9 - last, T[i], 0.0)

    return te.compute((4, 9), ends, "Y")


def test_single_positions_beside_a_term_that_is_everywhere_are_one_array() -> None:
    assert "\n".join(check(_with_ends(1, 1))).count(" + ") == 1
    assert "\n".join(check(_with_ends(2, 3))).count(" + ") == 2
    stacked = te.placeholder((4, 5), name="Z")
    columns = lambda i, j: te.select(j == 0, X[i, 3], 0.0) + stacked[i, j] - te.select(j == 2, X[i, 4], 0.0)  # noqa: E731
    check(te.compute((4, 3), columns, "Y"))


def test_ends_that_are_held_stand_around_all_of_an_array() -> None:
    """And what flows back to them is one array, beside a slice of all."""
    k = te.reduce_axis((0, 5), "k")
    held = te.compute((4, 9), lambda i, j: te.sum(X[i, te.clip(j + k - 2, 0, 8)], axis=k), "Y")
    text = "\n".join(check(held))
    assert "X[:, 1:]" not in text and "X," in text
    H = te.placeholder((4, 9), name="H")
    (dx,) = te.differentiate(held, [X], H)
    assert sum("concatenate" in line for line in check(dx)) == 1


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (lambda v: v * 0.05 * 1.6, " * 0.08"),
        (lambda v: -(v * 128.0 * 4.0), " * -512.0"),
        (lambda v: v * 3.0 / 4.2, " * 0.714"),
        (lambda v: v * 1e-20 * 1e-20, "float32(1e-20) * 1e-20"),  # zero in float32, as one number and as two
    ],
)
def test_numbers_of_a_product_are_one(scale, expected: str) -> None:
    """Of many products, so that their order is worth a change."""
    Y = te.compute((4, 9), lambda i, j: sum(scale(X[i, (j + k) % 9]) for k in range(10)), "Y")
    assert expected in "\n".join(check(Y, tolerance=1e-5))


@pytest.mark.parametrize("first", [np.int32(3), np.float32(1 / 3), 3])
@pytest.mark.parametrize("second", [0.5, np.float32(0.7), np.int32(5)])
def test_a_number_has_a_value_of_its_dtype(first, second) -> None:
    Y = te.compute((4, 9), lambda i, j: sum(X[i, (j + k) % 9] * first * second for k in range(10)), "Y")
    new = with_narrow_factors_first(Y.body, Y.axes)
    assert new is not Y.body
    numbers = [n for n in postorder(new) if isinstance(n, Const) and n.dtype == "int32"]
    assert numbers and all(isinstance(n.value, int) for n in numbers)
    check(Y, tolerance=1e-5)

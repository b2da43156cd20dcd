"""Digits of an axis, and numbers of digits in normal form."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.lang.expr import Axis, Expr
from jaxte.sets.affine import linear, normal
from jaxte.sets.digits import are_digits, at_digits, number_of, weights_of
from jaxte.tensors.inputs import Placeholder


def axis(extent: int = 96) -> Axis:
    return Axis("f", 0, extent)


def test_weights_are_found_in_nested_quotients() -> None:
    f = axis()
    assert weights_of(f, [f // 48 + f // 6 % 8, f % 6]) == [48, 6, 1]
    assert weights_of(f, [f // 48 % 2 + f % 48 // 6]) == [48, 6, 1]


@pytest.mark.parametrize(
    "read",
    [
        lambda f: f // 6 + f // 4,  # no number system has both
        lambda f: f // 36 + f % 36,  # the greatest digit is cut
        lambda f: (f + 1) // 6,
        lambda f: 2 * f,
    ],
)
def test_no_digits(read: object) -> None:
    f = axis()
    assert weights_of(f, [read(f)]) == []  # type: ignore[operator]


def test_indices_over_digits_divide_nothing() -> None:
    f, x = axis(), Placeholder("x", (96,), "float32")
    read = x[f // 48 * 48 + f // 6 % 8 * 6 + 5 - f % 6]
    number = number_of(f, [read])
    found = at_digits(read, {f: number.whole})
    a, b, c = number.digits
    assert found is x[normal(48 * a + 6 * b - c + 5)]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (lambda f: f // 6 - 8 * (f // 48), "f // 6 % 8"),
        (lambda f: 3 * (f // 6) - 24 * (f // 48) + f % 6, "3 * (f // 6 % 8) + f % 6"),
        (lambda f: f // 6 - 4 * (f // 48), None),
    ],
)
def test_differences_of_quotients_are_digits(index: object, text: str | None) -> None:
    f = axis()
    found: Expr = normal(index(f))  # type: ignore[operator]
    if text is not None:
        assert str(found) == text
    assert normal(found) is found


@pytest.mark.parametrize(
    ("factors", "expected"),
    [((12, 3, 1), True), ((-12, 3, -1), True), ((12, 2, 1), False), ((11, 3, 1), False), ((1, 30, 3), False)],
)
def test_multiples_of_axes_count_like_digits_where_no_two_positions_share_a_number(
    factors: tuple[int, ...], expected: bool
) -> None:
    axes = [te.reduce_axis((0, n), f"a{n}") for n in (5, 4, 3)]
    form = linear(sum(c * a for c, a in zip(factors, axes, strict=True)))
    assert are_digits(form) is expected
    numbers = {sum(c * at for c, at in zip(factors, p, strict=True)) for p in np.ndindex(5, 4, 3)}
    assert (len(numbers) == 60) >= expected


def test_rows_of_symbolic_length_count_like_digits() -> None:
    n = te.var("n")
    row, place = te.reduce_axis((0, n), "row"), te.reduce_axis((0, 8), "place")
    assert are_digits(linear(8 * row + place)) and not are_digits(linear(7 * row + place))
    assert not are_digits(linear(8 * place + row)), "rows may be longer than eight"

"""Which definitions are known to be finite wherever their inputs are, by the signs of what roots and divisors are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jaxte as te
from jaxte.algebra.product import stays_finite
from jaxte.algebra.signs import Sign, sign, with_even_functions
from jaxte.lang.expr import Call
from jaxte.lang.graphs import among
from jaxte.lang.walk import postorder

x = te.placeholder((4, 3), "float64", "x")
K = te.reduce_axis((0, 3), "k")
square = te.compute((4,), lambda i: te.sum(x[i, K] * x[i, K], axis=K), "square")
above = te.compute((4,), lambda i: te.sqrt(square[i] + 1e-6), "above")
below = te.compute((4,), lambda i: te.sqrt(square[i] - 1e-6), "below")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda i: square[i], Sign.NOT_NEGATIVE),
        (lambda i: above[i], Sign.POSITIVE),
        (lambda i: 1 + te.exp(x[i, 0]), Sign.POSITIVE),
        (lambda i: te.maximum(x[i, 0], 1e-3), Sign.POSITIVE),
        (lambda i: te.select(x[i, 0] > 0, 2.0, square[i]), Sign.NOT_NEGATIVE),
        (lambda i: te.minimum(x[i, 0], 1e-3), Sign.ANY),
        (lambda i: x[i, 0] * x[i, 1], Sign.ANY),
        (lambda i: x[i, 0] ** 2 + 1, Sign.POSITIVE),
        (lambda i: x[i, 0] ** 3 + 1, Sign.ANY),
    ],
)
def test_signs(body: Callable[[Any], Any], expected: Sign) -> None:
    made = te.compute((4,), body, "made")
    assert sign(made.body) is expected  # type: ignore[union-attr]


def test_what_is_divided_by_a_root_above_zero_is_finite() -> None:
    assert stays_finite(te.compute((4, 3), lambda i, k: x[i, k] / above[i], "a")[0, 0])
    assert not stays_finite(te.compute((4, 3), lambda i, k: x[i, k] / below[i], "b")[0, 0])
    assert not stays_finite(te.compute((4, 3), lambda i, k: x[i, k] / square[i], "c")[0, 0])
    assert not stays_finite(te.compute((4,), lambda i: te.log(square[i]), "d")[0])
    assert stays_finite(te.compute((4,), lambda i: te.log1p(square[i]), "e")[0])


@pytest.mark.parametrize(
    "slope",
    [
        lambda d: 1 - te.tanh(d) * te.tanh(d),
        lambda d: te.sigmoid(d) * (1 - te.sigmoid(d)),
        lambda d: te.cos(3 * d),
    ],
)
def test_even_slopes_are_the_same_from_both_sides(slope: Callable[[Any], Any]) -> None:
    there, back = slope(4 * (x[0, 0] - x[1, 0])), slope(4 * (x[1, 0] - x[0, 0]))
    assert with_even_functions(there) is with_even_functions(back)
    both = with_even_functions(there + 2 * back, with_slopes=False)
    assert isinstance(both, Call)
    assert both.args[1].children[1] is both.args[0]


@pytest.mark.parametrize("odd", [te.tanh, te.sin, te.atan])
@pytest.mark.parametrize("sign", [1, -1])
def test_slopes_of_one_direction_are_of_what_the_pass_forward_computes(
    odd: Callable[[Any], Any], sign: int
) -> None:
    value = odd(4 * (x[0, 0] - x[1, 0] if sign > 0 else x[1, 0] - x[0, 0]))
    slope = with_even_functions(1 - value * value, with_slopes=False)
    assert among(value, postorder(slope))


def test_the_slope_of_what_is_not_even_is_told_apart() -> None:
    there, back = te.exp(x[0, 0] - x[1, 0]), te.exp(x[1, 0] - x[0, 0])
    assert with_even_functions(there) is not with_even_functions(back)

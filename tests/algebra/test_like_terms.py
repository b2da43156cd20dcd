"""Terms that are multiples of each other are one term, in whatever order their factors stand."""

from __future__ import annotations

import numpy as np
import pytest

import jaxte as te
from jaxte.algebra.sums import alike, with_one_number
from jaxte.lang.expr import Const, Expr

X, Y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
I = te.reduce_axis((0, 4), "i")  # noqa: E741
A, B = X[I], Y[I]


@pytest.mark.parametrize(
    ("left", "right", "sign", "expected"),
    [
        (A, -(A * 0.1) * 4, 1, 0.6 * A),
        (A * (B * 2.0), B * A, 1, 3.0 * (A * B)),
        (A / B * 3.0, A * 2.0 / B, -1, A / B),
        (A * B, B * A, -1, Const(0.0)),
        (-A, A * 2.0, 1, A),
    ],
)
def test_added(left: Expr, right: Expr, sign: int, expected: Expr) -> None:
    assert alike(left, right, sign) is expected


@pytest.mark.parametrize(("left", "right"), [(A, B), (A * A, A), (A / B, A * B), (te.exp(A), A)])
def test_others_stay_apart(left: Expr, right: Expr) -> None:
    assert alike(left, right) is None


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (-A * B / (A + 2.0) * (0.75 * te.exp(B)) * 0.5, -(0.375 * (A * B / (A + 2.0) * te.exp(B)))),
        (-(-A * 0.5) * 4.0, 2.0 * A),
        (A * 0.5 * 2.0, A),
        (A * 1e-3 * 1e-3, A * 1e-3 * 1e-3),  # not in float16
        (0.5 * A * B, 0.5 * A * B),
        (A + 2.0, A + 2.0),
    ],
)
def test_the_numbers_of_a_product_are_one(product: Expr, expected: Expr) -> None:
    assert with_one_number(product) is expected


def test_the_gradient_of_a_power_of_a_sum_has_one_number() -> None:
    y = te.compute((4,), lambda i: X[i] / (2.0 + 0.01 * Y[i]) ** 0.75, "y")
    dy = te.formula(te.differentiate(y, [Y], te.placeholder(y.shape, name="H"))[0])
    assert "0.0075" in dy and dy.count("0.75") == 1


def _text(y: te.Tensor) -> str:
    return te.formula(te.differentiate(y, [X], te.placeholder(y.shape, name="H"))[0])


def test_a_step_is_a_multiple_of_the_head() -> None:
    y = te.compute((4,), lambda i: X[i] - X[i] * 0.1 * 4, "y")
    assert "0.6 * H[i]" in _text(y)


def test_a_square_in_a_product_is_twice_one_sum() -> None:
    k = te.reduce_axis((0, 4), "k")
    y = te.compute((4,), lambda i: te.sum(Y[k] * (X[i] * X[i]), axis=k), "y")
    assert _text(y).count("sum") == 1


def test_choices_by_position_that_read_alike_are_one() -> None:
    def element(i: Expr) -> Expr:
        s = 1 / (X[i] + 2)
        return te.select(i == 0, 0.0, s * s * s - s)

    y = te.compute((4,), element, "y")
    assert _text(y).count("i == 0") + _text(y).count("i != 0") + _text(y).count("1 <= i") == 1


def test_values() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.random(4).astype("float32") for _ in range(2))
    k = te.reduce_axis((0, 4), "k")
    z = te.compute((4,), lambda i: te.sum(Y[k] * X[i] * X[k] * X[i] - X[k] * 0.3 * X[i], axis=k), "z")
    (dx,) = te.differentiate(z, [X], te.placeholder((4,), name="H"))
    found = te.interpret(dx, {X: x, Y: y, next(t for t in dx.inputs if t.name == "H"): np.ones(4, "float32")})
    expected = 2 * x * (y @ x) + y * (x @ x) - 0.3 * (x.sum() + x.sum())
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_a_condition_alone_reads_adds_no_zero() -> None:
    x = te.placeholder((6,), name="x")
    i, j = te.reduce_axis((0, 6), "i"), te.reduce_axis((0, 6), "j")
    r = te.compute((6, 6), lambda i, j: (x[i] - x[j]) ** 2 + 0.5, "r")
    s = te.compute((6, 6), lambda i, j: te.sin(r[i, j]), "s")
    y = te.compute(
        (), lambda: te.sum(te.select(r[i, j] < 4.0, s[i, j] ** 2 - s[i, j], 0.0), axis=[i, j]), "y"
    )
    (dr,) = te.differentiate(y, [r])
    assert te.formula(dr) == "dr[i, j] = ds[i, j] * cos(r[i, j])  (i < 6, j < 6)"

"""Arithmetic on constants and on positions is done when the code is written, with the digits that JAX would give."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxte as te
from jaxte.lang.graphs import among
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, POWER, SUBTRACT
from jaxte.lower.arrays.elementwise import Number
from jaxte.lower.code.constants import converted, folded, numeral
from jaxte.tensors.structure import topological_order
from tests.lowered import check, sources

OPERATIONS = {ADD: jnp.add, SUBTRACT: jnp.subtract, MULTIPLY: jnp.multiply, DIVIDE: jnp.divide}
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)


@given(st.sampled_from(list(OPERATIONS)), FLOATS, FLOATS)
def test_digits_are_those_of_jax(op, a, b) -> None:
    kind = ("float32", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = folded(op, [numeral(a, kind), numeral(b, kind)], kind)
    wanted = np.asarray(OPERATIONS[op](jnp.float32(a), jnp.float32(b)))
    if found is None:
        assert not np.isfinite(wanted) or b == 0
    elif wanted != 0 or found.number == 0:  # XLA takes the least numbers for zero
        assert np.float32(found.number) == wanted


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_integers_that_overflow_are_left_to_jax(a, b) -> None:
    kind = ("int32", False)
    found = folded(MULTIPLY, [numeral(a, kind), numeral(b, kind)], kind)
    assert (found is None) == (abs(a * b + 0.5) > 2**31)
    assert found is None or found.number == a * b


def test_a_power_is_a_product() -> None:
    kind = ("float32", False)
    assert folded(POWER, [numeral(1.5, kind), numeral(2, ("int32", True))], kind).number == 2.25
    assert folded(POWER, [numeral(1.5, kind), numeral(0.5, ("float32", True))], kind) is None
    assert folded(NEGATIVE, [numeral(1.5, kind)], kind).code is Number(-1.5)


def test_a_number_is_written_with_few_digits() -> None:
    assert converted(numeral(0.1, ("float64", False)), "float32").code is Number(0.1)
    assert converted(numeral(2.5, ("float32", False)), "int32") is None
    assert converted(numeral(1e300, ("float64", False)), "float32") is None


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int8"])
@pytest.mark.parametrize("of", ["float32", "int32"])
def test_dtypes_stay(dtype: str, of: str) -> None:
    X = te.placeholder((9,), dtype, name="X")
    k = te.reduce_axis((0, 3), "k")
    weight = lambda k: te.cast((k - 1) * (k - 1) + 3, of)  # noqa: E731
    tolerance = 2e-2 if dtype in ("float16", "bfloat16") else 1e-6
    check(te.compute((7,), lambda i: te.sum(X[i + k] * weight(k), axis=k), "Y"), tolerance=tolerance)


def test_positions_of_a_sum_leave_no_integers() -> None:
    X = te.placeholder((9, 9), name="X")
    k = te.reduce_axis((0, 3), "k")

    def body(i, j):
        return te.sum(te.exp(X[i + k, j] - X[i, j] - te.cast((k - 1) * (k - 1), "float32") / 8), axis=k)

    Y = te.compute((7, 9), body, "Y")
    check(Y)
    written = " ".join(sources(Y))
    assert "int32" not in written and "/ 8" not in written and "- 0.125" in written


def test_sums_of_positions_are_not_lost() -> None:
    X = te.placeholder((9,), name="X")
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    check(te.compute((7,), lambda i: te.sum(te.cast(k * k, "float32"), axis=k) * X[i], "Y"))
    check(te.compute((7,), lambda i: te.sum(te.cast(k * m, "float32") + X[i + k], axis=[k, m]), "Y"))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32", "bfloat16"])
@pytest.mark.parametrize(
    "weight",
    [
        lambda i: te.exp(te.const(0.1)),
        lambda i: i / 3,
        lambda i: (i + 1) / 3 * 0.1,
        lambda i: te.sqrt(i + 1) - te.select(i < 2, te.sin(0.1), 0.7),
        lambda i: te.select(i < 9, 0.1, 0.7) * te.select(i >= 0, 0.1, 0.7) + 1.3,
        lambda i: te.select(i < 2, 0.1, 0.7) * (i / 3) + te.select(i < 2, 0.1, 0.7) * 0.3,
    ],
)
def test_numbers_and_positions_have_the_precision_of_what_they_meet(weight, dtype: str) -> None:
    """Python scalars and positions are weakly typed: beside float64 all that is made of them is float64."""
    with jax.enable_x64(True):
        X = te.placeholder((4,), dtype, name="X")
        Y = te.compute((4,), lambda i: X[i] * weight(i), "Y")
        x = jnp.arange(1, 5).astype(dtype)
        found, wanted = te.evaluate(Y, {X: x}), te.interpret(Y, {X: np.asarray(x)})
        assert found.dtype == wanted.dtype == dtype
        eps = 1e-15 if dtype in ("float64", "complex128") else float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(
            np.asarray(found, np.complex128), np.asarray(wanted, np.complex128), rtol=8 * eps
        )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "float32"])
def test_casts_of_positions_and_of_what_is_made_of_them(dtype: str) -> None:
    def cast(e):
        return te.cast(e, "int32")

    bodies = [
        lambda i: 2 * i - 1,
        lambda i: cast(i),
        lambda i: cast(i) * cast(6 - 2 * i),
        lambda i: cast(i) < cast(6 - 2 * i),
        lambda i: cast(i) == cast(6 - 2 * i),
        lambda i: cast(i) << cast(6 - 2 * i),
        lambda i: cast(i) // cast(9 - 2 * i),
    ]
    for body in bodies:
        Y = te.compute((4,), lambda i: te.cast(body(i), dtype), "Y")  # noqa: B023
        Z = te.compute((4,), lambda i: te.cast(body(i), dtype) * te.const(3, dtype), "Z")  # noqa: B023
        for tensor in (Y, Z):
            found, expected = te.evaluate(tensor, {}), te.interpret(tensor, {})
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_a_position_is_made_in_the_dtype_that_it_is_cast_to() -> None:
    Y = te.compute((4,), lambda i: te.cast(te.cast(i, "int32"), "float32"), "Y")
    assert "jnp.arange(4, dtype=jnp.float32)" in te.source(Y) and "astype" not in te.source(Y)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32"])
def test_sizes_that_a_dtype_does_not_hold_wrap(dtype: str) -> None:
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    feeds = {X: np.ones(300, "float32")}
    Z = te.compute((n,), lambda i: te.select(X[i] > 0, te.cast(n - 301, dtype), te.cast(n, dtype)), "Z")
    np.testing.assert_array_equal(te.evaluate(Z, feeds), te.interpret(Z, feeds))


def test_numbers_that_python_has_and_jax_takes_only_in_their_dtype() -> None:
    X, F = te.placeholder((5,), "uint32", "X"), te.placeholder((5,), name="F")
    feeds = {X: np.uint32([7, 2, 2**32 - 2, 4, 5]), F: np.float32([0, 1, 0, 1, 0])}
    k, j, w = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 5), "j"), te.reduce_axis((0, 3), "w")
    most = te.const(2**32 - 1, "uint32")
    bodies = {
        "masked": lambda i: te.min(X[k], axis=k, where=k != i),
        "by data": lambda i: te.min(X[k], axis=k, where=F[k] > F[i]),
        "position": lambda i: te.argmin(X[k], axis=k, where=k != i),
        "padded": lambda i: te.min(X[i + w - 1], axis=w, where=(i + w >= 1) & (i + w < 6)),
        "scattered": lambda i: te.min(X[k], axis=k, where=te.cast(F[k], "int32") == i),
        "chosen": lambda i: te.select(F[i] > 0, X[i], most),
        "both": lambda i: te.select(F[i] > 0, te.const(2**32 - 2, "uint32"), most),
        "sum": lambda i: X[i] + most,
        "compared": lambda i: X[i] < most - te.const(1, "uint32"),
        "two": lambda i: te.min(X[k], axis=k, where=k > i) // te.min(X[j], axis=j, where=j < 2),
    }
    for name, body in bodies.items():
        Y = te.compute((5,), body, "Y")
        used = {t: a for t, a in feeds.items() if among(t, topological_order([Y]))}
        for form in ("*", "general", "shifted slices", "reduce_window"):
            found = te.function(list(used), Y, forms={"*": form})(*used.values())
            np.testing.assert_array_equal(found, te.interpret(Y, used), err_msg=f"{name} {form}")


def test_booleans_in_conditions_of_positions() -> None:
    X = te.placeholder((8,), name="X")
    true = te.const(True)
    for body in (
        lambda i: te.select(true * i > 2, X[i], 0.0),
        lambda i: te.select(te.cast(i, "int32") * true > true, X[i - 2], 0.0),
        lambda i: te.select((true + true) * i > 1, X[i], 0.0),  # True or True is 1
    ):
        Y, x = te.compute((8,), body, "Y"), np.arange(8, dtype="float32")
        np.testing.assert_array_equal(te.evaluate(Y, {X: x}), te.interpret(Y, {X: x}))


def test_one_is_not_multiplied_with_and_signs_are_taken_once() -> None:
    x, s = te.placeholder((6, 2), name="x"), te.reduce_axis((0, 2), "s")
    y = te.compute((6,), lambda i: te.sum(te.select(s == 0, 1.0, -1.0) * (x[i, s] * 0.5), axis=s), "y")
    text = te.source(y)
    assert "y = 0.5 * x[:, 0] + 0.5 * -x[:, 1]" in text
    twice = te.compute((6,), lambda i: -(-(x[i, 0] * 1.0) / 1.0), "z")
    assert "z = x[:, 0]" in te.source(twice)
    values = np.random.default_rng(0).normal(size=(6, 2)).astype("float32")
    for tensor in (y, twice):
        np.testing.assert_array_equal(
            te.evaluate([tensor], {x: values})[0], te.interpret([tensor], {x: values})[0]
        )

"""Reads around the end of a tensor, ``X[(i + s) % n]``: rotations forward, rotations back for the adjoint."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def rotated(shift: int, n: int = 8) -> tuple[te.Placeholder, te.Compute]:
    X = te.placeholder((n, 3), name="X")
    return X, te.compute((n, 3), lambda i, j: X[(i + shift) % n, j], "Y")


@pytest.mark.parametrize("shift", [-7, -3, -1, 0, 1, 4, 7, 11])
def test_the_adjoint_of_a_rotation_is_the_rotation_back(shift: int, rng: np.random.Generator) -> None:
    X, Y = rotated(shift)
    H = te.placeholder(Y.shape, name="H")
    (dX,) = te.differentiate(Y, [X], head=H)
    x = rng.standard_normal(X.shape).astype("float32")
    np.testing.assert_array_equal(te.evaluate(Y, {X: x}), jnp.roll(x, -shift, 0))
    np.testing.assert_array_equal(te.evaluate(dX, {H: x}), jnp.roll(x, shift, 0))
    for tensor in (Y, dX):
        code = te.source(tensor)
        assert "arange" not in code and "sum" not in code
        assert not te.explain(tensor).scatters
    if shift % 8:
        back = (-shift + 3) % 8 - 3  # the nearer way around
        assert te.definitions(dX).startswith(
            f"dX[i, j] = H[(i {'+' if back > 0 else '-'} {abs(back)}) % 8, j]"
        )


def test_a_rotation_of_both_dimensions_is_one_roll() -> None:
    X = te.placeholder((5, 6), name="X")
    Y = te.compute((5, 6), lambda i, j: X[(i + 1) % 5, (j + 4) % 6], "Y")
    assert "jnp.roll(X, (-1, 2), axis=(0, 1))" in te.source(Y)
    x = np.arange(30, dtype="float32").reshape(5, 6)
    np.testing.assert_array_equal(te.evaluate(Y, {X: x}), jnp.roll(x, (-1, -4), (0, 1)))


def test_part_of_a_turn_is_no_rotation() -> None:
    """More positions than elements, or fewer: still a view."""
    X = te.placeholder((4,), name="X")
    x = np.arange(4, dtype="float32")
    for count in (3, 9):
        Y = te.compute((count,), lambda i: X[(i + 1) % 4], "Y")
        assert "arange" not in te.source(Y)
        np.testing.assert_array_equal(te.evaluate(Y, {X: x}), x[(np.arange(count) + 1) % 4])


@pytest.mark.parametrize("digit", [2, 3, 4])
@pytest.mark.parametrize("sign", [1, -1])
def test_rotations_and_reflections_of_digits(sign: int, digit: int) -> None:
    """``X[(s + i) % 12 // d, (s + i) % d]`` and with ``s - i``, for every ``s`` at once, against plain indexing."""
    x = np.arange(12, dtype="float32").reshape(12 // digit, digit)
    X = te.placeholder(x.shape, name="X")
    tables, i = [], np.arange(12)
    for shift in range(12):

        def at(i: te.Expr, shift: int = shift) -> te.Expr:
            return X[(sign * i + shift) % 12 // digit, (sign * i + shift) % digit]

        tables.append(te.compute((12,), at, f"t{shift}"))
    found = jax.jit(te.function([X], tables))(x)
    for shift, table in enumerate(found):
        np.testing.assert_array_equal(table, x.ravel()[(sign * i + shift) % 12], f"shift {shift}")


def test_columns_of_a_reflection_beyond_the_end() -> None:
    """Quotients of ``-m`` within a condition: what a random adjoint read was turned by the wrong way."""
    X = te.placeholder((5,), name="X")

    def body(i: te.Expr, m: te.Expr) -> te.Expr:
        at = 6 * i + 5 * (-m // 3) - 10 * ((3 * i + 3 * (-m // 3) + 1) // 5) + 2
        return te.select((0 <= at) & (at < 5), X[at], 0.0)

    y = te.compute((5, 6), body, "y")
    x = np.arange(1, 6, dtype="float32")
    i, m = np.indices((5, 6))
    at = 6 * i + 5 * (-m // 3) - 10 * ((3 * i + 3 * (-m // 3) + 1) // 5) + 2
    expected = np.where((0 <= at) & (at < 5), x[at.clip(0, 4)], 0)
    np.testing.assert_array_equal(te.function([X], y)(x), expected)


@pytest.mark.parametrize(
    "indices",
    [
        lambda f: (f // 24, 5 - f // 4 % 6, f % 4),
        lambda f: (5 - f // 24, f // 4 % 6, f % 4),
        lambda f: (f // 4 % 6, f // 24, f % 4),
    ],
)
def test_a_digit_is_not_turned_where_a_higher_one_would_go_around_with_it(
    indices, rng: np.random.Generator
) -> None:
    """``3 * i % 24`` falls as ``-i % 8`` rises, but ``i // 8`` is not ``(8 * h - i % 8) // 8``: wrong values before."""
    X = te.placeholder((6, 6, 4), name="X")
    Y = te.compute((48,), lambda i: X[indices(3 * i)], "Y")
    x = rng.standard_normal(X.shape).astype("float32")
    np.testing.assert_array_equal(te.evaluate(Y, {X: x}), te.interpret(Y, {X: x}))

"""Conditions on one axis are what they hold at, however they are spelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.planning.conditions.plain_conditions import with_plain_conditions
from jaxte.tensors.tensor import Compute

X = te.placeholder((24,), name="X")

SPELLINGS: dict[str, list[Callable[[Any], Any]]] = {
    "i % 2 == 0": [
        lambda i: i // 2 * 2 == i,
        lambda i: i // 2 * 2 >= i,
        lambda i: i % 2 < 1,
        lambda i: i % 2 != 1,
        lambda i: te.logical_not(2 * (i // 2) != i),
        lambda i: (i + 1) // 2 == i // 2,
        lambda i: (3 * i + 4) % 6 == 4,
    ],
    "i % 3 != 2": [
        lambda i: i % 3 < 2,
        lambda i: te.logical_not(i % 3 == 2),
        lambda i: (i + 1) // 3 == i // 3,
    ],
    "i >= 12 and i <= 15": [lambda i: i // 4 == 3, lambda i: te.minimum(i, 27 - i) // 4 == 3],
    "i <= 7": [lambda i: i // 4 < 2],
    "i == 23": [lambda i: i // 2 + i % 2 == 12],
    "True": [lambda i: i // 3 < 8],
    # neither a range nor a remainder, and what is one already
    "i // 4 != 2": [lambda i: i // 4 != 2],
    "i % 6 == 4": [lambda i: i % 6 == 4],
    "i <= 20": [lambda i: i <= 20],
}


@pytest.mark.parametrize("plain", SPELLINGS)
def test_each_spelling_is_the_plain_condition(plain: str) -> None:
    for condition in SPELLINGS[plain]:
        tensor = te.compute(X.shape, lambda i, c=condition: te.select(c(i), X[i], 2.0), "y")
        assert isinstance(tensor, Compute)
        body = with_plain_conditions(tensor.body)
        assert repr(body) == ("X[i]" if plain == "True" else f"select({plain}, X[i], 2.0)")
        arrays = {X: np.arange(24, dtype="float32") + 3}
        found = te.interpret([Compute("y", tensor.axes, body)], arrays)
        np.testing.assert_array_equal(found[0], te.interpret([tensor], arrays)[0])


def test_conditions_on_several_axes_and_on_data_stay() -> None:
    for condition in (lambda i, j: i // 2 == j // 2, lambda i, j: te.cast(X[i], "int32") // 2 == j):
        tensor = te.compute((6, 6), lambda i, j, c=condition: te.select(c(i, j), X[i], 2.0), "y")
        assert isinstance(tensor, Compute)
        assert with_plain_conditions(tensor.body) is tensor.body


def test_what_ranges_decide_is_no_division() -> None:
    """Each row and each phase of it, so that the adjoint of elements between others has a term for each, and no choice."""
    r = te.reduce_axis((0, 3), "r")
    for condition, plain in {
        lambda i: (3 * i + r) % 3 == 0: "r == 0",
        lambda i: te.logical_not((3 * i + r) // 3 == i): "False",
        lambda i: (6 * i + 2 * r) // 2 % 3 == 1: "r == 1",
    }.items():
        tensor = te.compute(
            (8,), lambda i, c=condition: te.sum(te.select(c(i), X[3 * i + r], 2.0), axis=r), "y"
        )
        assert isinstance(tensor, Compute)
        found = with_plain_conditions(tensor.body)
        chosen = "2.0" if plain == "False" else f"select({plain}, X[3 * i + r], 2.0)"
        assert repr(found) == f"sum({chosen} for r in [0, 3))"
    x = te.placeholder((4, 9), name="x")
    y = te.compute(
        (4, 18),
        lambda b, i: te.select(
            i % 2 == 0, x[b, i // 2], te.sin(x[b, i // 2]) * x[b, te.minimum(i // 2 + 1, 8)]
        ),
        "y",
    )
    (dx,) = te.differentiate(y, [x], head=te.placeholder(y.shape, name="H"))
    text = te.source(dx)
    assert "jnp.stack(" not in text and "reshape" not in text
    assert "H[:, ::2]" in text


def test_leading_digits_decide() -> None:
    """Both halves of a row, as in positions by rotation: the adjoint of what they share has a term for each, and no choice."""
    r = te.reduce_axis((0, 3), "r")
    for condition, plain in {
        lambda j: 8 * r + j < 8: "r == 0",
        lambda j: 8 * r + j >= 8: "r >= 1",
        lambda j: 8 * r <= 15 - j: "r <= 1",
        lambda j: 8 * r + j < 9: "8 * r + j < 9",
        lambda j: 8 * r + 2 * j < 8: "8 * r + 2 * j < 8",
    }.items():
        tensor = te.compute(
            (8,), lambda j, c=condition: te.sum(te.select(c(j), X[8 * r + j], 2.0), axis=r), "y"
        )
        assert isinstance(tensor, Compute)
        assert (
            repr(with_plain_conditions(tensor.body))
            == f"sum(select({plain}, X[8 * r + j], 2.0) for r in [0, 3))"
        )
    x, t = te.placeholder((6, 8), name="x"), te.placeholder((6, 4), name="t")
    turned = te.compute(
        (6, 8),
        lambda i, j: te.select(
            j < 4,
            x[i, j] * te.cos(t[i, j % 4]) - x[i, j + 4] * te.sin(t[i, j % 4]),
            x[i, j] * te.cos(t[i, j % 4]) + x[i, j - 4] * te.sin(t[i, j % 4]),
        ),
        "y",
    )
    (dt,) = te.differentiate(turned, [t], head=te.placeholder((6, 8), name="H"))
    assert "where" not in te.source(dt) and "pad" not in te.source(dt)

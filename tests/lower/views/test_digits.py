"""Reads over the digits of their axes: pixel shuffles, patches, and every other regrouping is reshape and transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxte as te

X = te.placeholder((2, 12, 3, 5), name="X")
H = te.placeholder((2, 3, 6, 10), name="H")
CASES: dict[str, tuple[tuple[int, ...], Callable[..., Any], str]] = {
    "pixel shuffle": (
        (2, 3, 6, 10),
        lambda n, c, i, j: X[n, 4 * c + 2 * (i % 2) + j % 2, i // 2, j // 2],
        "X.reshape(2, 3, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 6, 10)",
    ),
    "pixel unshuffle": (
        (2, 12, 3, 5),
        lambda n, c, i, j: H[n, c // 4, 2 * i + c // 2 % 2, 2 * j + c % 2],
        "H.reshape(2, 3, 3, 2, 5, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 3, 5)",
    ),
    "channel shuffle": (
        (2, 12, 3, 5),
        lambda n, c, i, j: X[n, c % 3 * 4 + c // 3, i, j],
        "X.reshape(2, 3, 4, 3, 5).transpose(0, 2, 1, 3, 4).reshape(2, 12, 3, 5)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_written(name: str) -> None:
    shape, body, written = CASES[name]
    y = te.compute(shape, body, "Y")
    assert written in te.source(y)
    x = y.inputs[0]
    head = te.placeholder(shape, name="G")
    (dx,) = te.differentiate(y, [x], head)
    text = te.source(dx)
    assert text.count(".transpose(") == 1 and text.count(".reshape(") == 2
    assert not te.explain(dx).gathers and ".at[" not in text
    feeds = {head: np.random.default_rng(0).standard_normal(shape).astype("float32")}
    np.testing.assert_array_equal(te.evaluate(dx, feeds), te.interpret(dx, feeds))


@settings(max_examples=60, deadline=None)
@given(
    radices=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    cut=st.integers(0, 3),
    order=st.randoms(use_true_random=False),
    extra=st.integers(0, 2),
)
def test_digits_in_any_order(radices: list[int], cut: int, order: Any, extra: int) -> None:
    """Axes are taken apart into digits, which are dealt out to the axes of the operand; sizes need not divide."""
    total = int(np.prod(radices))
    places = list(range(len(radices)))
    order.shuffle(places)
    first, second = places[: cut % len(places)], places[cut % len(places) :]
    extents = [int(np.prod([radices[p] for p in own])) for own in (first, second)]
    x = te.placeholder(tuple(extents), name="X")

    def body(f: te.Axis) -> te.Expr:
        digits, rest = [], f % total
        for radix in radices:
            digits.append(rest % radix)
            rest = rest // radix
        indices = []
        for own in (first, second):
            index: Any = 0
            for p in own:
                index = index * radices[p] + digits[p]
            indices.append(index)
        return x[tuple(indices)]

    y = te.compute((total + extra,), body, "Y")
    feeds = {x: np.arange(np.prod(extents), dtype="float32").reshape(extents)}
    np.testing.assert_array_equal(te.evaluate(y, feeds), te.interpret(y, feeds))


@pytest.mark.parametrize(
    ("shape", "at", "first"),
    [
        ((6, 1, 6, 4), lambda a, b, c: (a, 0, b, c), "X[:, 0]"),
        ((6, 6, 5, 4), lambda a, b, c: (a, b, 2, c), "X[:, :, 2]"),
        ((6, 3, 6, 2, 4), lambda a, b, c: (a, 1, b, 1, c), "X[:, 1, :, 1]"),
    ],
)
def test_single_positions_stand_between_digits_of_one_number(shape, at, first: str) -> None:
    X = te.placeholder(shape, name="X")
    Y = te.compute((48, 3), lambda i, j: X[at((3 * i + j) // 24, (3 * i + j) // 4 % 6, (3 * i + j) % 4)], "Y")
    assert f"Y = {first}.reshape(48, 3)" in str(te.source(Y))
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    np.testing.assert_array_equal(te.evaluate(Y, {X: x}), te.interpret(Y, {X: x}))

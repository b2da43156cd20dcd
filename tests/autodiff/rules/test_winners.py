"""Winners of maxima: which integers number them, and how gradients read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jaxte as te


def pooled(shape: tuple[int, ...], size: int, ties: str = "first", reduction: Any = te.max) -> Any:
    """Windows of ``size`` positions side by side along the last axis of an array, and the array."""
    x = te.placeholder(shape, name="x")

    def body(*i: Any) -> Any:
        k = te.reduce_axis((0, size), name="k")
        return reduction(x[(*i[:-1], size * i[-1] + k)], axis=k, ties=ties)

    return te.compute((*shape[:-1], shape[-1] // size), body, "y"), x


@pytest.mark.parametrize("ties", ["first", "last"])
@pytest.mark.parametrize(
    ("size", "dtype"), [(2, "int8"), (127, "int8"), (128, "int16"), (32767, "int16"), (32768, "int32")]
)
def test_the_shortest_integers_number_the_winner(size: int, dtype: str, ties: str) -> None:
    y, x = pooled((2, size), size, ties)
    result = te.differentiate(y, [x], te.placeholder(y.shape, name="h"))
    (winner,) = [t for t in result[0].inputs if t.name == "winner_y"]
    assert winner.dtype == dtype
    assert f".astype(jnp.{dtype})" in te.source(result[0]) or f"dtype=jnp.{dtype}" in te.source(result[0])


@pytest.mark.parametrize("ties", ["first", "last"])
@pytest.mark.parametrize("reduction", [te.max, te.min])
@pytest.mark.parametrize("size", [126, 127, 128])
def test_winners_at_the_ends_of_short_integers(size: int, reduction: Any, ties: str) -> None:
    """All elements alike, one at either end, and one that is not a number, which has no winner."""
    y, x = pooled((4, size), size, ties, reduction)
    h = te.placeholder(y.shape, name="h")
    (dx,) = te.differentiate(y, [x], h)
    sign = 1.0 if reduction is te.max else -1.0
    given = np.zeros((4, size), "float32")
    given[1, 0], given[2, -1], given[3, 5] = sign, sign, np.nan
    feeds = {x: given, h: np.arange(1, 5, dtype="float32").reshape(4, 1)}
    found = np.asarray(te.evaluate(dx, feeds))
    expected = np.zeros((4, size), "float32")
    expected[0, 0 if ties == "first" else -1], expected[1, 0], expected[2, -1] = 1, 2, 3
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(te.interpret(dx, feeds), expected)

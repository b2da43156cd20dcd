"""Indices that are piecewise affine functions of one affine form: their pieces beside their values, point by point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.sets.affine import linear
from jaxte.sets.piecewise_affine import PiecewiseAffine, of_number, piecewise_affine, runs_of
from jaxte.sets.tabulate import evaluate_index, tabulated

N = 9
i, k = te.reduce_axis((0, 8), "i"), te.reduce_axis((0, 3), "k")


def reflected(t: Any) -> Any:
    return te.minimum(te.maximum(t, -t), 2 * (N - 1) - te.maximum(t, -t))


PIECEWISE: dict[str, Callable[[], Any]] = {
    "wrapped": lambda: (i + k) % N,
    "wrapped in front": lambda: (i - k) % N,
    "strided": lambda: (2 * i + k - 2) % N,
    "every second of": lambda: (2 * i + 2 * k) % N,
    "backwards": lambda: (k - 2 * i) % N,
    "held": lambda: te.minimum(te.maximum(i + k - 2, 0), N - 1),
    "held, strided": lambda: te.clip(3 * i + k - 1, 0, N - 1),
    "reflected": lambda: reflected(i + k - 2),
    "wrapped, then held": lambda: te.minimum((i + k) % N, 5),
    "of a quotient": lambda: (i // 2 - k) % N,
    "outside at an end": lambda: te.minimum(i + k - 2, N - 3),
}


def values_of(own: PiecewiseAffine) -> np.ndarray:
    found = np.full(own.extent, -1)
    for piece in own.pieces:
        if piece.first is not None:
            found[piece.start : piece.stop] = piece.first + piece.step * np.arange(piece.stop - piece.start)
    return found


@pytest.mark.parametrize("name", PIECEWISE)
def test_pieces_have_the_values_of_the_index(name: str) -> None:
    index = PIECEWISE[name]()
    own = piecewise_affine(index, N)
    assert own is not None
    assert [p.stop for p in own.pieces] == [p.start for p in own.pieces[1:]] + [own.extent]
    values = values_of(own)
    met = set()
    for a in range(8):
        for b in range(3):
            at = {i: a, k: b}
            position, expected = evaluate_index(own.position, at), evaluate_index(index, at)
            met.add(position)
            assert values[position] == (expected if 0 <= expected < N else -1)
    assert min(met) == 0 and max(met) == own.extent - 1


def test_wraps_are_straight_and_ends_are_not() -> None:
    straight = {name for name, index in PIECEWISE.items() if piecewise_affine(index(), N).straight}  # type: ignore[union-attr]
    assert {"wrapped", "wrapped in front", "strided", "backwards"} <= straight
    assert not straight & {"held", "held, strided", "reflected", "wrapped, then held"}


@pytest.mark.parametrize("name", ["held", "held, strided", "reflected"])
def test_ends_stand_around_all_that_moves(name: str) -> None:
    """The value in which an end and the rest meet belongs to the rest, which is the whole tensor then."""
    own = piecewise_affine(PIECEWISE[name](), N)
    assert own is not None
    moving = max((p for p in own.pieces if p.step), key=lambda p: p.stop - p.start)
    assert (moving.first, moving.step) == (0, 1)
    assert own.pieces[0].first == (2 if name == "reflected" else 0) and own.pieces[0] is not moving


@pytest.mark.parametrize(
    "values",
    [
        [5, 5, 4, 3, 2, 3, 4, 5, 6, 7, 8, 9],
        [0, 2, 4, 6, 8, 10, 10, 10, 10, 12, 14, 16, 17, 18, 19, 20],
        [0, 0, 1, 2, 4, 6, 8, 5, 7, 9, 11],
    ],
)
def test_a_piece_that_two_others_meet_has_all_its_positions(values: list[int]) -> None:
    pieces = runs_of(np.array(values))
    assert pieces is not None
    assert [p.start for p in pieces] == [0, *(p.stop for p in pieces[:-1])] and pieces[-1].stop == len(values)
    found = [p.first + p.step * n for p in pieces for n in range(p.stop - p.start)]  # type: ignore[operator]
    assert found == values


@pytest.mark.parametrize(
    "index",
    [
        i + k,
        (i + 3) % N,
        te.minimum(i, 4),
        (i + k) % N + i,
        te.minimum(i + k, 2 * i),
        (i + 8 * k) // 2,  # more pieces than are written
    ],
)
def test_other_indices_are_none(index: Any) -> None:
    assert piecewise_affine(index, N) is None


t, n = te.reduce_axis((-2, 30), "t"), te.var("n")
OF_ONE_NUMBER: dict[str, tuple[Any, Any]] = {
    "beside its remainder": ((i + k) % 3 + i + k, t % 3 + t),
    "at a size": ((2 * i + 2 * k + n) // 3 - n, (2 * t + n) // 3 - n),
    "nested": (te.minimum((i + k - 1) % N, 5), te.minimum((t - 1) % N, 5)),
    "chosen": (
        te.select((i >= 2 - k) & (k + i < 7), i + k, 8 - i - k),
        te.select((t >= 2) & (t < 7), t, 8 - t),
    ),
}


@pytest.mark.parametrize("name", OF_ONE_NUMBER)
def test_an_index_is_written_over_the_number_that_it_is_of(name: str) -> None:
    index, expected = OF_ONE_NUMBER[name]
    found = of_number(index, linear(i + k), t)
    assert found is not None
    at = {t: np.arange(-2, 30), n: 13}
    np.testing.assert_array_equal(tabulated(found, at), tabulated(expected, at))


@pytest.mark.parametrize(
    "index", [(i + k) % 3 + i, (i + 2 * k) // 2, te.select(i < 2, i + k, 0), te.minimum(i, k)]
)
def test_of_two_numbers_it_is_a_function_of_none(index: Any) -> None:
    assert of_number(index, linear(i + k), t) is None

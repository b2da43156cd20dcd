"""Indices that are piecewise affine functions of one affine form: their pieces beside their values, point by point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxte as te
from jaxte.sets.piecewise_affine import PiecewiseAffine, piecewise_affine
from jaxte.sets.tabulate import evaluate_index

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

"""Matrices that are known and have few numbers side by side in each row: resizing, finite differences, smoothing.

A product with one is a sum of a few shifted reads, ``sum over t of w[j, t] * x[start(j) + t]`` with ``start(j) = (p * j + c) // q``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

_MOST_TAPS = 4
_SPARSER = 16  # times fewer taps than columns, where a product of matrices is no faster


@dataclass(frozen=True)
class Band:
    """The numbers of a matrix beside its steep line.

    Attributes:
        slope, shift: row ``j`` begins at column ``(p * j + shift) // q`` for the slope ``p / q``.
        taps: the numbers of each row from there on, (rows, taps).
    """

    slope: Fraction
    shift: int
    taps: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return _starts(self.slope, self.shift, len(self.taps))


def band_of(matrix: np.ndarray) -> Band | None:
    """The band of ``matrix``, (rows, columns); None where its rows have too many numbers, or do not lie along one line."""
    rows, columns = matrix.shape
    filled = matrix != 0
    held = filled.any(1)
    if columns < _SPARSER or not held.any() or int(filled.sum(1).max()) > _MOST_TAPS:
        return None
    first = np.where(held, filled.argmax(1), columns)
    last = np.where(held, columns - 1 - filled[:, ::-1].argmax(1), -1)
    for slope in _slopes(rows, columns):
        p, q = slope.numerator, slope.denominator
        shift = int(np.min((q * first + q - 1 - p * np.arange(rows))[held]))
        starts = _starts(slope, shift, rows)
        count = int(np.max((last - starts)[held])) + 1
        if count <= _MOST_TAPS and count * _SPARSER <= columns:
            place = starts[:, None] + np.arange(count)
            inside = (place >= 0) & (place < columns)
            numbers = np.take_along_axis(matrix, np.clip(place, 0, columns - 1), 1)
            return Band(slope, shift, np.where(inside, numbers, 0).astype(matrix.dtype))
    return None


def _slopes(rows: int, columns: int) -> Iterator[Fraction]:
    yield Fraction(1)
    if rows != columns:
        yield Fraction(columns, rows)


def _starts(slope: Fraction, shift: int, rows: int) -> np.ndarray:
    return (slope.numerator * np.arange(rows) + shift) // slope.denominator

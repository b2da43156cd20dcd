"""Products with known matrices that are sums of a few reads: of chosen elements, or of those side by side in each row.

A matrix with one number in each row is a selection: one-hot rows, permutations, cyclic shifts, and the kernels with which
``lax.conv_general_dilated_patches`` takes windows. One with a few numbers side by side is a band: resizing, finite differences, smoothing. A
product with it is ``sum over t of w[j, t] * x[start(j) + t]`` with ``start(j) = (p * j + c) // q``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.frontends.jaxpr.values.positions import positions_in
from jaxte.lang.expr import ZERO
from jaxte.lang.limits import FEW, MANY_OPERATIONS


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
    # Elements other than 0 in a column, up to which the others are not multiplied.
    if columns < MANY_OPERATIONS or not held.any() or int(filled.sum(1).max()) > FEW:
        return None
    first = np.where(held, filled.argmax(1), columns)
    last = np.where(held, columns - 1 - filled[:, ::-1].argmax(1), -1)
    for slope in _slopes(rows, columns):
        p, q = slope.numerator, slope.denominator
        shift = int(np.min((q * first + q - 1 - p * np.arange(rows))[held]))
        starts = _starts(slope, shift, rows)
        count = int(np.max((last - starts)[held])) + 1
        # Each tap is a loop in place of so many products; with fewer, a product of matrices is as fast.
        if count <= FEW and count * MANY_OPERATIONS <= columns:
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


@dataclass(frozen=True)
class Selection:
    """Where the number of each row stands, one array for each dimension that is summed over, and the number, one for all."""

    positions: tuple[np.ndarray, ...]
    number: Any


def selection_of(rows: np.ndarray) -> Selection | None:
    """The selection that ``rows`` is, of which the first dimension stays.

    None where some row has no number, several, or its own, and where their positions follow no index expression.
    """
    if rows.ndim < 2 or rows.shape[0] < 2 or rows[0].size < 2:
        return None
    flat = rows.reshape(rows.shape[0], -1)
    filled = flat != 0
    if not np.all(np.count_nonzero(filled, axis=1) == 1):
        return None
    numbers = flat[filled]
    if np.any(numbers != numbers[0]):
        return None
    places = np.unravel_index(filled.argmax(1), rows.shape[1:])
    if any(positions_in(p, [ZERO], e) is None for p, e in zip(places, rows.shape[1:], strict=True)):
        return None
    return Selection(places, numbers[0].item())


def kernel_selection(kernel: Any, spec: tuple[int, ...]) -> Selection | None:
    """What a known kernel of a convolution selects for each output feature; ``spec`` are its dimensions, output and input features first."""
    return None if kernel is None else selection_of(np.transpose(np.asarray(kernel), spec))


def known_factors(step: Step) -> Iterator[np.ndarray]:
    """The known matrix of a ``dot_general`` with an array that is not, along its rows; none where there is no such product."""
    (left, right), batched = step.eqn.params["dimension_numbers"]
    if any(batched) or len(left) != 1:
        return
    for n, (contracted,) in enumerate((left, right)):
        matrix = step.inputs[n].known
        if matrix is not None and np.ndim(matrix) == 2 and step.inputs[1 - n].known is None:
            yield along_rows(np.asarray(matrix), contracted)


def along_rows(matrix: np.ndarray, contracted: int) -> np.ndarray:
    """``matrix`` with the dimension that is summed over as its columns."""
    return matrix if contracted == 1 else matrix.T

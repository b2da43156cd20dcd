"""Known arrays of numbers of which one in each row is not 0: a product with one is a read of chosen elements.

One-hot rows, permutation matrices, cyclic shifts, and the kernels with which ``lax.conv_general_dilated_patches`` takes windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.values.constants import positions_in
from jaxte.lang.expr import ZERO


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

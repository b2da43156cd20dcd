"""Which elements of an input each element of an array depends on: pairs of positions, kept as sorted numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np


@dataclass(frozen=True, eq=False)
class Pattern:
    """Of an array of ``shape``, by an input of ``columns`` elements.

    Attributes:
        keys: ``element * columns + column`` of each pair, sorted and different.
    """

    shape: tuple[int, ...]
    columns: int
    keys: np.ndarray

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Elements and columns, by elements."""
        element, column = np.divmod(self.keys, max(self.columns, 1))
        return element, column

    @property
    def is_empty(self) -> bool:
        return not self.keys.size

    def moved(self, shape: Sequence[int], to: np.ndarray, source: np.ndarray) -> Pattern:
        """That of an array whose element ``to[n]`` depends on element ``source[n]`` of this one; each may come several times."""
        element, column = self.pairs
        begin, end = np.searchsorted(element, source), np.searchsorted(element, source, side="right")
        count = end - begin
        place = np.repeat(begin - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(
            count.sum()
        )
        keys = np.repeat(to.astype(np.int64), count) * self.columns + column[place]
        return Pattern(tuple(shape), self.columns, np.unique(keys))

    def read_at(self, positions: np.ndarray) -> Pattern:
        """That of an array that holds the elements at ``positions`` of this one; what is negative is from elsewhere."""
        flat = positions.reshape(-1)
        to = np.flatnonzero(flat >= 0)
        return self.moved(positions.shape, to, flat[to])

    def everywhere(self, shape: Sequence[int]) -> Pattern:
        """That of an array each of whose elements depends on all of this one."""
        columns = np.unique(self.pairs[1])
        keys = (np.arange(prod(shape), dtype=np.int64)[:, None] * self.columns + columns).reshape(-1)
        return Pattern(tuple(shape), self.columns, keys)


def identity(shape: Sequence[int]) -> Pattern:
    """That of the input itself."""
    size = prod(shape)
    return Pattern(tuple(shape), size, np.arange(size, dtype=np.int64) * (size + 1))


def nothing(shape: Sequence[int], columns: int) -> Pattern:
    """That of an array that does not depend on the input."""
    return Pattern(tuple(shape), columns, np.zeros(0, np.int64))


def union(patterns: Sequence[Pattern]) -> Pattern:
    """That of an array each of whose elements depends on those of all of ``patterns``, of one shape."""
    first = patterns[0]
    if len(patterns) == 1:
        return first
    return Pattern(first.shape, first.columns, np.unique(np.concatenate([p.keys for p in patterns])))

"""Rows in blocks, each beside the few columns that a mask takes of it: sliding and chunked attention as products of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

LEAST = 128  # rows, of fewer of which a block is not worth a product of its own
_LEAST_BLOCK, _FEWEST = 16, 4  # rows of a block, and blocks
# columns that a product of each block takes the time of, by rows: measured on two cores, blocks of 16 are best beside 8 columns, of 32 beside 64, of 64 beside 257
_OF_BLOCK = 24
_MOST = 0.5  # of the columns, above which little is left out


@dataclass(frozen=True)
class Blocks:
    """Rows in blocks, and the chunks of columns that each block reads, from ``low`` to ``high`` of its own place.

    Attributes:
        rows, columns: how many there are in all.
        count: of blocks, and of chunks.
    """

    rows: int
    columns: int
    count: int
    low: int
    high: int

    @property
    def height(self) -> int:
        return self.rows // self.count

    @property
    def width(self) -> int:
        return (self.high - self.low + 1) * (self.columns // self.count)

    def of_rows(self, x: Any, d: int) -> Any:
        """The blocks of an array with rows along dimension ``d``, one after the other."""
        return jnp.moveaxis(_divided(x, d, self.count), d, 0)

    def of_columns(self, x: Any, d: int) -> Any:
        """The columns that each block reads; zeros where there are none."""
        chunks = jnp.moveaxis(_divided(x, d, self.count), d, 0)
        ends = [(-self.low, self.high, 0)] + [(0, 0, 0)] * (chunks.ndim - 1)
        padded = lax.pad(chunks, jnp.zeros((), chunks.dtype), ends)
        taken = range(self.high - self.low + 1)
        return jnp.concatenate([lax.slice_in_dim(padded, n, n + self.count) for n in taken], d + 1)

    def of_whole(self, x: Any, row: int, column: int) -> Any:
        """The blocks of an array of all pairs; zeros where there are no columns.

        Each block begins a chunk after the one before, which is a reshape of rows that are a chunk longer: no positions are gathered.
        """
        chunk = self.columns // self.count
        pairs = jnp.moveaxis(x, (row, column), (-2, -1))
        ends = [(0, 0, 0)] * (x.ndim - 1) + [(-self.low * chunk, self.high * chunk, 0)]
        padded = lax.pad(pairs, jnp.zeros((), x.dtype), ends)
        lead, length = padded.shape[:-2], self.height * padded.shape[-1]
        flat = padded.reshape(*lead, self.count * length)
        longer = lax.pad(flat, jnp.zeros((), x.dtype), [(0, 0, 0)] * len(lead) + [(0, self.count * chunk, 0)])
        own = longer.reshape(*lead, self.count, length + chunk)[..., :length]
        tiles = own.reshape(*lead, self.count, self.height, padded.shape[-1])[..., : self.width]
        return jnp.moveaxis(tiles, (-3, -2, -1), (0, row + 1, column + 1))

    def of_pairs(self, x: np.ndarray, row: int, column: int, off: Any) -> np.ndarray:
        """A known array of all pairs; ``off`` where there are no columns."""
        pairs = np.moveaxis(x, (row, column), (0, 1))
        rest, count = pairs.shape[2:], self.count
        pairs = pairs.reshape(count, self.height, count, -1, *rest)
        found = np.full((self.high - self.low + 1, *pairs[:, :, 0].shape), off, x.dtype)
        for n in range(len(found)):
            own = [b for b in range(count) if 0 <= b + self.low + n < count]
            found[n, own] = pairs[own, :, [b + self.low + n for b in own]]
        found = np.moveaxis(found, 0, 2).reshape(count, self.height, self.width, *rest)
        return np.moveaxis(found, (1, 2), (row + 1, column + 1))

    def as_rows(self, x: Any, d: int) -> Any:
        """The array of whose rows, along dimension ``d``, ``x`` has the blocks."""
        moved = jnp.moveaxis(x, 0, d)
        return jnp.reshape(moved, (*moved.shape[:d], self.rows, *moved.shape[d + 2 :]))

    def around(self, x: np.ndarray) -> np.ndarray:
        """What a known array, of rows and columns first, has outside of all that is read."""
        tiles = x.reshape(self.count, self.height, self.count, self.columns // self.count, *x.shape[2:])
        place = np.arange(self.count) - np.arange(self.count)[:, None]
        return tiles.swapaxes(1, 2)[(place < self.low) | (place > self.high)]


def _divided(x: Any, d: int, count: int) -> Any:
    return jnp.reshape(x, (*x.shape[:d], count, x.shape[d] // count, *x.shape[d + 1 :]))


def blocks_of(mask: np.ndarray) -> Blocks | None:
    """The blocks in which least is computed of what ``mask`` takes; None where that is no band."""
    rows, columns = mask.shape
    best, least = None, inf
    for height in range(_LEAST_BLOCK, rows // _FEWEST + 1):
        count = rows // height
        if rows % height or columns % count or rows < LEAST:
            continue
        taken = mask.reshape(count, height, count, -1).any((1, 3))
        own, chunk = np.nonzero(taken)
        if not own.size:
            return None
        found = Blocks(rows, columns, count, int((chunk - own).min()), int((chunk - own).max()))
        price = found.width * (1 + _OF_BLOCK / height)
        if found.width <= _MOST * columns and price < least:
            best, least = found, price
    return best

"""Arrays over all pairs of rows and columns: known ones, and those of which a mask takes a band, as rows in blocks beside the few columns that it takes of each.

Sliding and chunked attention are products of such blocks. Which dimensions of an operand the rows and columns are is said here, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxte.bridge.jaxprs import scan_counts
from jaxte.frontends.jaxpr.equations.dimensions import dimensions
from jaxte.frontends.jaxpr.equations.known import folded
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, known_array
from jaxte.frontends.jaxpr.rules.shape import runs_of_equal_size
from jaxte.lang.graphs import ordered
from jaxte.lang.limits import FEW, HALVED, LARGE_TABLE, LONG, MOST_KEPT

_LEAST_BLOCK = 16  # rows of a block
# columns that a product of each block takes the time of, by rows: measured on two cores, blocks of 16 are best beside 8 columns, of 32 beside 64, of 64 beside 257
_OF_BLOCK = 24


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
    # There are several blocks at least.
    for height in range(_LEAST_BLOCK, rows // FEW + 1):
        count = rows // height
        if rows % height or columns % count or rows < LONG:
            continue
        taken = mask.reshape(count, height, count, -1).any((1, 3))
        own, chunk = np.nonzero(taken)
        if not own.size:
            return None
        found = Blocks(rows, columns, count, int((chunk - own).min()), int((chunk - own).max()))
        price = found.width * (1 + _OF_BLOCK / height)
        # Of more of the columns, little is left out.
        if HALVED * found.width <= columns and price < least:
            best, least = found, price
    return best


Given = Mapping[int, np.ndarray]
"""Known arrays, masks of pairs among them, by the numbers of the arguments that they are."""
NOTHING_GIVEN: Given = {}
_AGAIN = ("remat", "remat2", "checkpoint")


class Known:
    """Arrays that no argument moves, computed when they are asked for."""

    def __init__(self, steps: Sequence[Step], given: Mapping[Slot, Any]) -> None:
        masks = {slot: c for slot, c in given.items() if slot.known is None and slot.dtype == "bool"}
        found = {slot: known_array(c, LARGE_TABLE) for slot, c in masks.items()}
        self._values: dict[Slot, Any] = {slot: value for slot, value in found.items() if value is not None}
        self._free: set[Slot] = set(self._values)
        for step in steps:
            if len(step.outputs) == 1 and not step.eqn.effects and all(map(self.has, step.inputs)):
                self._free.add(step.outputs[0])

    def has(self, slot: Slot) -> bool:
        """Whether arguments do not move an array, as far as its equations say."""
        return slot.known is not None or slot in self._free

    def value(self, slot: Slot) -> np.ndarray | None:
        """What such an array holds; None where there is no row for one of its equations."""
        for own in ordered([slot], lambda s: () if self._there(s) is not None else self._makers(s)):
            if own not in self._values:
                values = [self._there(s) for s in self._makers(own)]
                missing = own.origin is None or any(v is None for v in values)
                # One that repeats a mask may have as many elements.
                self._values[own] = None if missing else folded(own.origin.eqn, values, MOST_KEPT)[0]  # type: ignore[union-attr]
        return self._there(slot)

    def pairs(self, slot: Slot) -> np.ndarray | None:
        """An array of pairs with their dimensions first, and one position of others that repeat it."""
        pair = pair_of(slot)
        value = self.value(slot) if pair is not None else None
        if pair is None or value is None:
            return None
        moved = np.moveaxis(value, pair, (0, 1))
        once = (slice(0, 1) if step == 0 else slice(None) for step in moved.strides[2:])
        return moved[(slice(None), slice(None), *once)]

    def _makers(self, slot: Slot) -> Sequence[Slot]:
        return () if slot.origin is None or slot.known is not None else slot.origin.inputs

    def _there(self, slot: Slot) -> Any:
        return self._values.get(slot) if slot.known is None else np.asarray(slot.known)


def given_to(closed: Any, slots: Mapping[Any, Slot], given: Given) -> dict[Slot, Any]:
    """The arrays of a jaxpr that are there when it is planned."""
    consts = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    return {slots[v]: c for v, c in consts} | {slots[closed.jaxpr.invars[n]]: a for n, a in given.items()}


def given_to_body(eqn: Any, steps: Sequence[Step], known: Known) -> Given:
    """The known arguments of the body of ``eqn`` that are the same in each step of a loop, or of what is computed again: what is known where the
    loop stands, and large masks of pairs, which are computed for this.
    """
    name = eqn.primitive.name
    if len(steps) != 1 or (name != "scan" and name not in _AGAIN):
        return NOTHING_GIVEN
    inputs = steps[0].inputs[: scan_counts(eqn.params)[0] if name == "scan" else None]
    masks = {n: slot for n, slot in enumerate(inputs) if slot.dtype == "bool" and known.has(slot)}
    found = {n: known.value(slot) for n, slot in masks.items() if pair_of(slot) is not None}
    there = {n: slot.known for n, slot in enumerate(inputs) if slot.known is not None}
    return there | {n: value for n, value in found.items() if value is not None}


def candidates(steps: Sequence[Step], known: Known) -> Iterator[tuple[Blocks, bool]]:
    """The blocks of each known mask of pairs, with its rows first, or ``turned``, with its columns first."""
    tried: set[Slot] = set()
    asked: set[tuple[Blocks, bool]] = set()
    for step in steps:
        read = () if any(map(known.has, step.outputs)) else filter(known.has, step.inputs)
        for slot in map(_before_repeats, read):
            value = None if slot in tried else known.pairs(slot)
            tried.add(slot)
            if value is None:
                continue
            taken = value != value[0, -1]  # which is furthest from the diagonal
            mask = taken.any(tuple(range(2, taken.ndim)))
            if mask.sum(1).max() <= 1:
                continue  # a diagonal of a product is a sum, which is less than any block
            for turned in (False, True):
                blocks = blocks_of(mask.T if turned else mask)
                if blocks is not None and (blocks, turned) not in asked:
                    asked.add((blocks, turned))
                    yield blocks, turned


def _before_repeats(slot: Slot) -> Slot:
    while slot.origin is not None and slot.origin.name == "broadcast_in_dim" and len(slot.origin.inputs) == 1:
        slot = slot.origin.inputs[0]
    return slot


def pair_of(slot: Slot) -> tuple[int, int] | None:
    """The dimensions of an array of pairs, the last two of several positions."""
    found = [d for d, extent in enumerate(slot.shape) if extent != 1][-2:]
    if len(found) != 2 or min(slot.shape[d] for d in found) < LONG:
        return None
    own = prod(slot.shape[d] for d in found) if slot.dtype == "bool" else prod(slot.shape)
    # An array of pairs that is larger is not looked at.
    return (found[0], found[1]) if own <= LARGE_TABLE else None


Labels = list[list[Hashable]]


def labels_of(step: Step) -> Labels | None:
    """For each operand, what its dimensions are: those of the result by number, and what is summed; None of one position."""
    if step.name == "reshape" and len(step.inputs) == 1 and step.eqn.params.get("dimensions") is None:
        runs = runs_of_equal_size(step.inputs[0].shape, step.outputs[0].shape)
        alone = {own[0]: made[0] for own, made in runs if len(own) == len(made) == 1}
        return [[alone.get(d, (d,)) for d in range(len(step.inputs[0].shape))]]
    if step.name == "gather":
        return _labels_of_gather(step)
    found = dimensions(step.eqn) if len(step.outputs) == 1 and not step.eqn.effects else None
    if found is None:
        return None
    summed = step.eqn.params["dimension_numbers"][0] if step.name == "dot_general" else None

    def label(n: int, d: int, own: int | None) -> Hashable:
        if own is not None or step.inputs[n].shape[d] == 1:
            return own
        return (d if summed is None else list(summed[n]).index(d),)

    return [[label(n, d, own) for d, own in enumerate(dims)] for n, dims in enumerate(found)]


def _labels_of_gather(step: Step) -> Labels | None:
    """Those of positions; what they take of has its dimensions in whole."""
    numbers = step.eqn.params["dimension_numbers"]
    if numbers.operand_batching_dims:
        return None
    own = [d for d in range(len(step.outputs[0].shape)) if d not in numbers.offset_dims]
    return [[None] * len(step.inputs[0].shape), [*own, None]]


Roles = list[tuple[int | None, int | None]]
"""The dimensions of rows and of columns of each operand."""


def roles_of(labels: Labels, row: Hashable, column: Hashable) -> Roles:
    return [tuple(own.index(x) if x in own else None for x in (row, column)) for own in labels]  # type: ignore[misc]

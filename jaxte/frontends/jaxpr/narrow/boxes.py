"""Boxes of arrays: which positions are asked for along each dimension, and an array at those of another one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from math import prod
from operator import is_
from typing import Any

import numpy as np
from jax import lax

from jaxte.lang.limits import HALVED

# the positions along one dimension, ascending; None for all of them
Positions = np.ndarray | None
# those of an array: what is read lies in the product of them
Box = tuple[Positions, ...]


def whole(rank: int) -> Box:
    """All positions along each of ``rank`` dimensions."""
    return (None,) * rank


def is_whole(box: Box) -> bool:
    """Whether ``box`` has all positions along each dimension."""
    return all(map(is_, box, repeat(None)))


def united(boxes: Sequence[Box], shape: Sequence[int]) -> Box:
    """What several readers read together; all positions of a dimension of which they read most."""
    return tuple(_united([box[d] for box in boxes], extent) for d, extent in enumerate(shape))


def _united(read: Sequence[Positions], extent: int) -> Positions:
    parts = [p for p in read if p is not None]
    if len(parts) < len(read) or not parts:
        return None
    found = np.unique(np.concatenate(parts))
    # Of the positions along a dimension; of more of them, all are computed.
    return found if HALVED * len(found) <= extent else None


def count(positions: Positions, extent: int) -> int:
    """How many positions there are along a dimension."""
    return extent if positions is None else len(positions)


def shape_of(box: Box, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of what a box of an array holds."""
    return tuple(count(p, e) for p, e in zip(box, shape, strict=True))


def size_of(box: Box, shape: Sequence[int]) -> int:
    """How many elements a box has."""
    return prod(shape_of(box, shape))


def same(a: Box, b: Box) -> bool:
    """Whether two boxes have the same positions."""
    return len(a) == len(b) and all(_same(p, q) for p, q in zip(a, b, strict=True))


def _same(p: Positions, q: Positions) -> bool:
    return p is q if p is None or q is None else np.array_equal(p, q)


def taken(value: Any, held: Box, wanted: Box) -> Any:
    """The elements at ``wanted`` of an array of which those at ``held`` are there."""
    for d, (have, want) in enumerate(zip(held, wanted, strict=True)):
        if want is None or _same(have, want):
            continue
        places = want if have is None else np.searchsorted(have, want)
        value = _at(value, places, d)
    return value


def _at(value: Any, places: np.ndarray, d: int) -> Any:
    if isinstance(value, np.ndarray):
        return np.take(value, places, d)
    steps = np.diff(places)
    if len(places) == 1 or np.all(steps == steps[0]):
        return lax.slice_in_dim(
            value, int(places[0]), int(places[-1]) + 1, int(steps[0]) if len(steps) else 1, d
        )
    rank = value.ndim
    numbers = lax.GatherDimensionNumbers(tuple(n for n in range(rank) if n != d), (d,), (d,))
    sizes = tuple(1 if n == d else e for n, e in enumerate(value.shape))
    return lax.gather(
        value,
        places[:, None].astype("int32"),
        numbers,
        sizes,
        unique_indices=True,
        indices_are_sorted=True,
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )

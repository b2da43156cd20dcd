"""Arrays that a loop hands on and writes a row of in each step: which write each read sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from jax.extend.core import Literal

from jaxte.frontends.jaxpr.loops.accesses import Access, Box, read_of, write_of
from jaxte.frontends.jaxpr.loops.counters import Counters, Numbers, Position
from jaxte.frontends.jaxpr.loops.masks import Masks
from jaxte.lang.limits import CASES, FEW, LARGE_TABLE, MOST_PARTS


class Unclear(Exception):
    """Why an array stays one that the loop hands on."""


@dataclass(frozen=True, eq=False)
class Source:
    """Where a row comes from in each step.

    Attributes:
        at: the positions of the row along the counted dimensions.
        given: by step, whether the row is one of the array as it was before the loop.
        written: which writes, how many steps ago, and in which steps.
    """

    at: tuple[Position, ...]
    given: Numbers
    written: tuple[tuple[int, int, Numbers], ...]


@dataclass(frozen=True, eq=False)
class Tracked:
    """An array whose rows are written by the counter.

    Attributes:
        first: what a step takes.
        writes: one after the other.
        axes: the dimensions that are counted.
        box: what of a row is read and written.
        before: for each write, the row that it changes; None where nothing remains of it.
        rows: reads of single rows, by equation, with one source for each row.
        last: for each write, the steps of which its row is the last one at its position.
        lags: for each write, how many steps ago its row is read at most.
    """

    first: Any
    writes: tuple[Access, ...]
    axes: tuple[int, ...]
    box: Box
    before: tuple[Source | None, ...]
    rows: Mapping[int, tuple[Access, list[Source]]]
    last: tuple[Numbers, ...]
    lags: tuple[int, ...]

    @property
    def versions(self) -> list[Any]:
        return [self.first, *(w.result for w in self.writes)]

    @property
    def rest(self) -> list[int]:
        return _rest(self.first, self.axes)

    @property
    def sources(self) -> list[Source]:
        """Of all rows that are read."""
        return [s for _, many in self.rows.values() for s in many] + [s for s in self.before if s is not None]

    @property
    def row_size(self) -> int:
        return prod(self.box.sizes)


def tracked(first: Any, returned: Any, eqns: Sequence[Any], masks: Masks, counters: Counters) -> Tracked:
    """How the array that a step takes as ``first`` and returns as ``returned`` is written.

    Raises:
        Unclear: it is not written row by row, or read where the row that is seen is not known.
    """
    makers = {v: eqn for eqn in eqns for v in eqn.outvars}
    writes = _chain(first, returned, makers, counters)
    moving = [d for d in range(len(first.aval.shape)) if any(not _start(w, d).is_still for w in writes)]
    if not moving:
        raise Unclear("written at one place in all steps")
    if any(w.sizes[d] != 1 for w in writes for d in moving):
        raise Unclear("several rows are written at once")
    if len(moving) > 1 and any(_start(w, d).outer for w in writes for d in moving):
        raise Unclear("written at positions that two counters move")
    if any(len({_start(w, d).outer for w in writes}) > 1 for d in moving):
        raise Unclear("written at positions that are not compared")
    return _Reading(first, writes, tuple(moving), masks, counters).tracked()


def _rest(array: Any, axes: Sequence[int]) -> list[int]:
    return [d for d in range(len(array.aval.shape)) if d not in axes]


def _start(access: Access, d: int) -> Position:
    start = access.starts[d]
    if start is None:
        raise Unclear("written at positions that are data")
    return start


def _chain(first: Any, returned: Any, makers: Any, counters: Counters) -> tuple[Access, ...]:
    """The writes that lead from one to the other."""
    writes: list[Access] = []
    while returned is not first:
        eqn = None if isinstance(returned, Literal) else makers.get(returned)
        found = None if eqn is None else write_of(eqn, counters, makers)
        if found is None:
            name = "what it is" if eqn is None else eqn.primitive.name
            raise Unclear(f"computed as a whole in each step ({name})")
        writes.append(found)
        returned = found.array
    return tuple(reversed(writes))


class _Reading:
    """Which write each read of an array sees."""

    def __init__(
        self, first: Any, writes: tuple[Access, ...], axes: tuple[int, ...], masks: Masks, counters: Counters
    ) -> None:
        self.first, self.writes, self.axes = first, writes, axes
        self.masks, self.counters, self.steps = masks, counters, counters.steps
        self.rest = _rest(first, axes)
        self.outer = [_start(writes[0], d).outer for d in axes]
        self.versions = [first, *(w.result for w in writes)]
        self.single, self.wide = self._sorted()
        every = [[_start(w, d) for d in axes] for w in writes]
        every += [[p for p in (a.starts[d] for d in axes) if p is not None] for _, a in self.single]
        self.least = [min(int(s[n].numbers.min()) for s in every) for n in range(len(axes))]
        # Rows that are read at once, of those that were written.
        tops = [max(int(s[n].numbers.max()) for s in every) + CASES for n in range(len(axes))]
        self.spans = [top - low + 1 for top, low in zip(tops, self.least, strict=True)]
        # Rows of a relation that is held as sorted numbers: 32 MB.
        if prod(self.spans) > LARGE_TABLE:
            raise Unclear("too many rows")
        self.period = self.steps * len(writes) + 1
        self.keys = [self._keys([_start(w, d) for d in axes]) * self.period for w in writes]
        times = [np.arange(self.steps) * len(writes) + n for n in range(len(writes))]
        self.keys = [k + t for k, t in zip(self.keys, times, strict=True)]
        self.events = np.sort(np.concatenate(self.keys))

    def tracked(self) -> Tracked:
        single = [(v, a) for v, a in self.single if not all(s.given.all() for s in self._rows(v, a))]
        box = self._box([a for _, a in single])
        before = []
        for n, write in enumerate(self.writes):
            whole = write.sets and tuple(write.sizes[d] for d in self.rest) == box.sizes
            before.append(None if whole else self._source(tuple(_start(write, d) for d in self.axes), n))
        rows = {id(access.eqn): (access, self._rows(version, access)) for version, access in single}
        for version, eqn, var in self.wide:
            self._whole(version, eqn, var)
        ends = self.events[1:] // self.period != self.events[:-1] // self.period
        last = tuple(np.isin(k, self.events[np.append(ends, True)]) for k in self.keys)
        found = Tracked(self.first, self.writes, self.axes, box, tuple(before), rows, last, ())
        return replace(found, lags=tuple(_lag(found, n) for n in range(len(self.writes))))

    def _sorted(self) -> tuple[list[tuple[int, Access]], list[tuple[int, Any, Any]]]:
        """The readers of rows, and those of more."""
        single: list[tuple[int, Access]] = []
        wide: list[tuple[int, Any, Any]] = []
        for version, var in enumerate(self.versions):
            for eqn in self.masks.readers(var):
                if version < len(self.writes) and eqn is self.writes[version].eqn:
                    if sum(a is var for a in eqn.invars) > 1:
                        raise Unclear("written into itself")
                    continue
                access = read_of(eqn, self.counters)
                if access is not None and self._apart(access):
                    continue
                rows = access is not None and self._is_rows(access)
                if access is not None and rows:
                    single.append((version, access))
                else:
                    wide.append((version, eqn, var))
            if version < len(self.writes) and var in self.masks.returned:
                raise Unclear("returned as it is between two writes")
        return single, wide

    def _apart(self, access: Access) -> bool:
        """Whether a read is of what no write is at, by a dimension that is not counted."""
        for d in self.rest:
            own = access.starts[d]
            if own is None:
                continue
            gaps = [own.plus(_start(w, d), -1) for w in self.writes]
            if all(
                g.least >= w.sizes[d] or g.most <= -access.sizes[d]
                for g, w in zip(gaps, self.writes, strict=True)
            ):
                return True
        return False

    def _is_rows(self, access: Access) -> bool:
        sizes = [access.sizes[d] for d in self.axes]
        few = prod(sizes) == 1 or (len(sizes) == 1 and sizes[0] <= CASES)
        starts = [access.starts[d] for d in self.axes]
        if not few or any(s is None or s.outer != o for s, o in zip(starts, self.outer, strict=True)):
            return False
        return sizes == [1] * len(sizes) or sizes[0] < self.first.aval.shape[self.axes[0]]

    def _rows(self, version: int, access: Access) -> list[Source]:
        """Where each row that is read comes from."""
        starts = tuple(p for p in (access.starts[d] for d in self.axes) if p is not None)
        width = prod(access.sizes[d] for d in self.axes)
        return [self._source(_moved(starts, by), version) for by in range(width)]

    def _box(self, reads: Sequence[Access]) -> Box:
        """The smallest box around what is written and read of rows, in dimensions that are not counted."""
        starts, sizes = [], []
        for d in self.rest:
            places = [(a.starts[d], a.sizes[d]) for a in (*self.writes, *reads)]
            known = [(p, n) for p, n in places if p is not None and p.is_still]
            extent = self.first.aval.shape[d]
            if len(known) < len(places) or len({p.outer for p, _ in known}) > 1:
                starts.append(Position(np.zeros(self.steps, int)))
                sizes.append(extent)
                continue
            low = min(int(p.numbers[0]) for p, _ in known)
            high = max(int(p.numbers[0]) + n for p, n in known)
            starts.append(Position(np.full(self.steps, low), known[0][0].outer))
            sizes.append(high - low)
        return Box(tuple(starts), tuple(sizes))

    def _keys(self, starts: Sequence[Position]) -> Numbers:
        own = [
            np.broadcast_to(s.numbers, self.steps) - low for s, low in zip(starts, self.least, strict=True)
        ]
        return np.ravel_multi_index(own, self.spans, mode="clip")

    def _source(self, starts: tuple[Position, ...], version: int) -> Source:
        """What was last written at ``starts`` before the write number ``version`` of each step."""
        count = len(self.writes)
        keys = self._keys(starts)
        asked = keys * self.period + np.arange(self.steps) * count + version
        place = np.searchsorted(self.events, asked) - 1
        seen = self.events[np.maximum(place, 0)]
        given = (place < 0) | (seen // self.period != keys)
        time = seen % self.period
        lag, write = np.arange(self.steps) - time // count, time % count
        pairs = sorted({(int(w), int(g)) for w, g in zip(write[~given], lag[~given], strict=True)})
        if len(pairs) > 3:
            raise Unclear("read at rows that were written a varying number of steps ago")
        written = tuple((w, g, ~given & (write == w) & (lag == g)) for w, g in pairs)
        return Source(starts, given, written)

    def _whole(self, version: int, eqn: Any, var: Any) -> None:
        """That nothing of what ``eqn`` reads and needs was written before."""
        told = f"read at many rows, some of which were written before ({eqn.primitive.name})"
        if len(self.axes) > 1 or any(self.outer):
            raise Unclear(told)
        (axis,) = self.axes
        extent = self.first.aval.shape[axis]
        if extent * self.steps > LARGE_TABLE:
            raise Unclear("too many rows")
        needed = self.masks.read(eqn, var, axis)
        access = read_of(eqn, self.counters)
        if access is not None and access.starts[axis] is not None and access.sizes[axis] < extent:
            start = access.starts[axis]
            assert start is not None
            places = start.numbers[:, None] + np.arange(access.sizes[axis])[None]
            inside = np.zeros((self.steps, extent), bool)
            np.put_along_axis(inside, np.broadcast_to(places, (self.steps, access.sizes[axis])), True, axis=1)
            needed = inside
        count = len(self.writes)
        first = np.full(extent, self.steps * count)
        for n, write in enumerate(self.writes):
            np.minimum.at(first, _start(write, axis).numbers, np.arange(self.steps) * count + n)
        now = np.arange(self.steps) * count + version
        if (np.broadcast_to(needed, (self.steps, extent)) & (first[None] < now[:, None])).any():
            raise Unclear(told)


def _lag(array: Tracked, write: int) -> int:
    """How many steps ago a row is read at most."""
    lag = max((g for s in array.sources for w, g, _ in s.written if w == write), default=0)
    # A row of few steps ago is handed on, however long it is; for reads further back, so many numbers are.
    if lag > FEW and lag * array.row_size > MOST_PARTS:
        raise Unclear(f"rows of {lag} steps ago are read, which would be handed on")
    return lag


def _moved(starts: tuple[Position, ...], by: int) -> tuple[Position, ...]:
    return tuple(Position(s.numbers + by, s.outer) if by else s for s in starts)

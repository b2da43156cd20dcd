"""What each step of a loop takes: rows of arrays from before the loop, numbers that count, and what it begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.loops.accesses import Access
from jaxte.frontends.jaxpr.loops.body import Body
from jaxte.frontends.jaxpr.loops.counters import Numbers, Outer, Position
from jaxte.frontends.jaxpr.loops.places import Live, Place, taken
from jaxte.frontends.jaxpr.loops.tracked import Source, Tracked
from jaxte.lang.limits import FEW


@dataclass(eq=False)
class Rows:
    """Arrays that a step takes one row of, each once."""

    arrays: list[Any] = field(default_factory=list)
    places: dict[Any, int] = field(default_factory=dict)

    def add(self, key: Any, make: Callable[[], Any]) -> int:
        if key not in self.places:
            self.places[key] = len(self.arrays)
            self.arrays.append(make())
        return self.places[key]


class Given:
    """What the steps of a loop take.

    Args:
        body: their body.
        first: the carries before the loop.
        fixed: what else is there before it, which rows that are the same in each step are added to.
        outer: the values of what counts around it.
        reverse: whether rows are stacked from the last step to the first.
    """

    def __init__(
        self,
        body: Body,
        first: Sequence[Any],
        fixed: dict[Any, Any],
        outer: Mapping[Outer, Any],
        reverse: bool,
    ) -> None:
        self.body, self.first, self.fixed, self.outer, self.reverse = body, first, fixed, outer, reverse
        self.steps = body.counters.steps
        self.rows = Rows()
        self.begins: dict[tuple[int, int, int], tuple[Position, ...]] = {}
        for n, array in body.arrays.items():
            for source in array.sources:
                self._begin(n, source)

    def _begin(self, n: int, source: Source) -> None:
        """Rows from before the loop, which a loop begins with where the first steps read them in place of written ones."""
        if len(source.written) != 1:
            return
        ((k, lag, _),) = source.written
        if not lag or not source.given[:lag].all() or source.given[lag:].any():
            return
        own = {
            (n, k, lag - t): tuple(Position(p.numbers[t : t + 1], p.outer) for p in source.at)
            for t in range(lag)
        }
        if all(_same_place(self.begins.get(key, place), place) for key, place in own.items()):
            self.begins |= own

    def begins_with(self, n: int, source: Source) -> bool:
        """Whether the loop begins with what the first steps read of ``source``."""
        if len(source.written) != 1:
            return False
        ((k, lag, _),) = source.written
        if not lag or not source.given[:lag].all() or source.given[lag:].any():
            return False
        return all(
            _same_place(
                self.begins[n, k, lag - t], tuple(Position(p.numbers[t : t + 1], p.outer) for p in source.at)
            )
            for t in range(lag)
        )

    def register(self, n: int, k: int) -> Any:
        """The rows that are handed on of a write, the latest first, as they are before the loop."""
        array = self.body.arrays[n]
        rows = []
        for lag in range(1, array.lags[k] + 1):
            place = self.begins.get((n, k, lag))
            if place is None:
                rows.append(jnp.zeros(array.box.sizes, array.first.aval.dtype))
            else:
                rows.append(taken(self.first[n], self.place(array, place))[0])
        # Rows that are handed on one by one.
        return rows if len(rows) <= FEW else jnp.stack(rows)

    def place(self, array: Tracked, at: Sequence[Position]) -> Place:
        """Where the rows of an array are that stand ``at`` these positions."""
        box = dict(zip(array.rest, zip(array.box.starts, array.box.sizes, strict=True), strict=True))
        moving = {d: self.stored(p) for d, p in zip(array.axes, at, strict=True)}
        return Place(
            tuple((d, numbers, offset) for d, (numbers, offset) in moving.items()),
            tuple((d, self.number(start, 0), size) for d, (start, size) in box.items()),
        )

    def stored(self, p: Position) -> tuple[Numbers, Any]:
        """The numbers in the order in which rows are stacked, and what is added to all of them."""
        numbers = np.asarray(p.numbers, int)
        return (numbers[::-1] if self.reverse else numbers), self._offset(p)

    def _offset(self, p: Position) -> Any:
        total: Any = 0
        for outer, factor in p.outer:
            total = total + factor * jnp.reshape(self.outer[outer], ())
        return total

    def number(self, p: Position, step: int) -> Any:
        """A position in a step, as an integer or as an array."""
        return int(p.numbers[step]) + self._offset(p)

    def take(self, xs: Sequence[Any], live: Live) -> None:
        """Adds what is needed."""
        body = self.body
        for var, x in zip(body.jaxpr.invars[body.consts + body.carried :], xs, strict=True):
            if var in live.read:
                self.rows.add(var, partial(jnp.asarray, x))
        for n in body.counts:
            var = body.taken[n]
            if var in live.read:
                self._count(var)
        for e, access in body.lifted.items():
            if e in live.equations:
                self._lift(access)
        for n, source in live.sources:
            if source.given.any() and not self.begins_with(n, source):
                self._given(n, source)
            if len(source.written) + bool(source.given.any()) > 1 and not self.begins_with(n, source):
                for _, _, mask in source.written:
                    key = "mask", mask.tobytes()
                    own = mask[::-1] if self.reverse else mask
                    self.rows.add(key, partial(jnp.asarray, own))

    def _count(self, var: Any) -> None:
        p = self.body.counters.of(var)
        assert p is not None
        numbers, offset = self.stored(Position(np.broadcast_to(p.numbers, self.steps), p.outer))
        dtype, shape = var.aval.dtype, var.aval.shape
        self.rows.add(
            var,
            lambda: (
                jnp.reshape(jnp.asarray(numbers.astype(dtype)) + jnp.asarray(offset, dtype), (-1, *shape))
                if p.outer
                else jnp.asarray(numbers.astype(dtype).reshape(-1, *shape))
            ),
        )

    def _lift(self, access: Access) -> None:
        rank = range(len(access.sizes))
        starts = [s for s in access.starts if s is not None]
        moving = [d for d in rank if not starts[d].is_still]
        place = Place(
            tuple((d, *self.stored(starts[d])) for d in moving),
            tuple((d, self.number(starts[d], 0), access.sizes[d]) for d in rank if d not in moving),
            access.sizes[moving[0]] if len(moving) == 1 else 1,
        )
        self.rows.add(id(access.eqn), lambda: taken(self.fixed[access.array], place))

    def _given(self, n: int, source: Source) -> None:
        array = self.body.arrays[n]
        key = key_of(n, source)
        still = all(p.is_still for p in source.at)
        if still:
            at = tuple(Position(p.numbers[:1], p.outer) for p in source.at)
            self.fixed[key] = taken(self.first[n], self.place(array, at))[0]
        else:
            at = tuple(Position(np.broadcast_to(p.numbers, self.steps), p.outer) for p in source.at)
            self.rows.add(key, lambda: taken(self.first[n], self.place(array, at)))


def key_of(n: int, source: Source) -> Any:
    """What tells rows from before the loop apart."""
    return n, *((np.broadcast_to(p.numbers, len(source.given)).tobytes(), p.outer) for p in source.at)


def _same_place(a: tuple[Position, ...], b: tuple[Position, ...]) -> bool:
    return all(p.outer == q.outer and bool((p.numbers == q.numbers).all()) for p, q in zip(a, b, strict=True))

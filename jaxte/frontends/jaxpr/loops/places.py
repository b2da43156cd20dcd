"""Rows of an array at the positions of all steps of a loop: taken from it, and put into it.

What of a loop's body is needed, where rows take the place of arrays.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from jaxte.frontends.jaxpr.loops.accesses import Access
from jaxte.frontends.jaxpr.loops.body import Body
from jaxte.frontends.jaxpr.loops.counters import Numbers
from jaxte.frontends.jaxpr.loops.tracked import Source


@dataclass(frozen=True, eq=False)
class Place:
    """Rows of an array.

    Attributes:
        moving: dimensions along which each row has its own position, with these positions and what is added to all of them.
        box: the other dimensions, with the first position and the size of a row.
        width: how many positions a row has along the only moving dimension.
    """

    moving: tuple[tuple[int, Numbers, Any], ...]
    box: tuple[tuple[int, Any, int], ...]
    width: int = 1


def taken(value: Any, place: Place) -> Any:
    """All rows, stacked along a new first dimension; dimensions that move are gone, or stand first where a row is wider than one."""
    value = _cut(value, place.box)
    if len(place.moving) == 1 and place.width == 1:
        ((axis, numbers, offset),) = place.moving
        by = _stride(numbers)
        if by is not None and (abs(by) == 1 or isinstance(offset, int)):
            return _strided(value, axis, int(numbers.min()), len(numbers), by, offset)
    axes = [d for d, _, _ in place.moving]
    front = jnp.moveaxis(value, axes, range(len(axes)))
    places = [n + o for _, n, o in place.moving]
    if place.width > 1:
        places = [p[:, None] + np.arange(place.width) for p in places]
    return front[tuple(places)]


def placed(value: Any, place: Place, rows: Any) -> Any:
    """``value`` with stacked rows at their place."""
    inner = _cut(value, place.box)
    if len(place.moving) == 1:
        ((axis, numbers, offset),) = place.moving
        by = _stride(numbers)
        if by is not None and abs(by) == 1:
            rows = lax.rev(rows, (0,)) if by < 0 else rows
            starts = {axis: int(numbers.min()) + offset} | {d: s for d, s, _ in place.box}
            return updated(value, jnp.moveaxis(rows, 0, axis), [starts[d] for d in range(value.ndim)])
    axes = [d for d, _, _ in place.moving]
    front = jnp.moveaxis(inner, axes, range(len(axes)))
    front = front.at[tuple(n + o for _, n, o in place.moving)].set(rows, unique_indices=True)
    inner = jnp.moveaxis(front, range(len(axes)), axes)
    starts = dict.fromkeys(axes, 0) | {d: s for d, s, _ in place.box}
    return updated(value, inner, [starts[d] for d in range(value.ndim)])


def joined(row: Any, sizes: Sequence[int], shape: Sequence[int], moving: Sequence[int]) -> Any:
    """One row as the box that it is."""
    if all(sizes[d] == 1 for d in moving):
        return jnp.expand_dims(row, tuple(moving))
    return jnp.moveaxis(row, 0, moving[0])


def boxed(row: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """A box of a row."""
    return _cut(row, [(d, s, n) for d, (s, n) in enumerate(zip(starts, sizes, strict=True))])


def _cut(value: Any, box: Sequence[tuple[int, Any, int]]) -> Any:
    known = {d: (s, n) for d, s, n in box if isinstance(s, int) and n < value.shape[d]}
    if known:
        low = [known.get(d, (0, 0))[0] for d in range(value.ndim)]
        high = [known[d][0] + known[d][1] if d in known else value.shape[d] for d in range(value.ndim)]
        value = lax.slice(value, low, high)
    unknown = {d: (s, n) for d, s, n in box if not isinstance(s, int) and n < value.shape[d]}
    if unknown:
        starts = [unknown[d][0] if d in unknown else 0 for d in range(value.ndim)]
        sizes = [unknown[d][1] if d in unknown else value.shape[d] for d in range(value.ndim)]
        value = lax.dynamic_slice(value, starts, sizes, allow_negative_indices=False)
    return value


def _stride(numbers: Numbers) -> int | None:
    """How far apart positions are, where all are equally far."""
    if len(numbers) == 1:
        return 1
    apart = np.diff(numbers)
    return int(apart[0]) if apart[0] and (apart == apart[0]).all() else None


def _strided(value: Any, axis: int, least: int, count: int, by: int, offset: Any) -> Any:
    extent = (count - 1) * abs(by) + 1
    if isinstance(offset, int):
        found = lax.slice_in_dim(value, least + offset, least + offset + extent, abs(by), axis)
    else:
        starts: list[Any] = [0] * value.ndim
        starts[axis] = least + offset
        sizes = [extent if d == axis else n for d, n in enumerate(value.shape)]
        found = lax.dynamic_slice(value, starts, sizes, allow_negative_indices=False)
    found = lax.rev(found, (axis,)) if by < 0 else found
    return jnp.moveaxis(found, axis, 0)


def updated(value: Any, part: Any, starts: Sequence[Any]) -> Any:
    """``value`` with ``part`` from ``starts`` on, joined of pieces where these are known."""
    part = part.astype(value.dtype)
    if value.shape == part.shape:
        return part
    if not all(isinstance(s, int) for s in starts):
        return lax.dynamic_update_slice(value, part, starts)
    d = next(n for n, (a, b) in enumerate(zip(value.shape, part.shape, strict=True)) if a != b)
    low, high = starts[d], starts[d] + part.shape[d]
    inner = updated(
        lax.slice_in_dim(value, low, high, axis=d), part, [0 if n == d else s for n, s in enumerate(starts)]
    )
    ends = lax.slice_in_dim(value, 0, low, axis=d), lax.slice_in_dim(value, high, value.shape[d], axis=d)
    return lax.concatenate([p for p in (ends[0], inner, ends[1]) if p.shape[d]], d)


class Live:
    """What of a body is needed.

    Attributes:
        equations: those that are computed, read rows or take lifted ones.
        writes: rows that are made.
        stacked: rows that the array behind the loop is made of.
        handed: rows that later steps read.
        sources: of the rows that are read.
        read: variables that are read.

    Args:
        body: the body.
        states: the carries that are handed on.
        fixed: what is there before the loop.
        sums: whether sums are taken behind the loop.
    """

    def __init__(self, body: Body, states: Sequence[int], fixed: Container[Any], sums: bool) -> None:
        self._body, self._fixed = body, fixed
        self._makers = {v: eqn for eqn in body.jaxpr.eqns for v in eqn.outvars}
        self.equations: set[int] = set()
        self.writes: set[tuple[int, int]] = set()
        self.sources: list[tuple[int, Source]] = []
        self.read: set[Any] = set()
        every = [(n, k) for n, a in body.arrays.items() for k in range(len(a.writes))]
        self.stacked = [(n, k) for n, k in every if body.arrays[n].last[k].any()]
        self._stack: list[Any] = [body.returned[n] for n in states]
        self._stack += body.jaxpr.outvars[body.carried :]
        self._stack += [t for s in (body.sums.values() if sums else ()) for t, _ in s.terms]
        for key in self.stacked:
            self._write(*key)
        self._follow()
        self.handed = [(n, k) for n, k in every if body.arrays[n].lags[k] and (n, k) in self.writes]

    def _follow(self) -> None:
        while self._stack:
            var = self._stack.pop()
            if isinstance(var, Literal) or var in self.read:
                continue
            self.read.add(var)
            eqn = self._makers.get(var)
            if eqn is None or var in self._fixed or id(eqn) in self.equations:
                continue
            self.equations.add(id(eqn))
            if id(eqn) in self._body.reads:
                n, access, sources = self._body.reads[id(eqn)]
                self._atoms(n, access)
                for source in sources:
                    self._source(n, source)
            elif id(eqn) not in self._body.lifted:
                self._stack += eqn.invars

    def _write(self, n: int, k: int) -> None:
        if (n, k) in self.writes:
            return
        self.writes.add((n, k))
        array = self._body.arrays[n]
        self._stack.append(array.writes[k].value)
        self._atoms(n, array.writes[k])
        source = array.before[k]
        if source is not None:
            self._source(n, source)

    def _source(self, n: int, source: Source) -> None:
        self.sources.append((n, source))
        for k, _, _ in source.written:
            self._write(n, k)

    def _atoms(self, n: int, access: Access) -> None:
        self._stack += [
            access.atoms[d] for d in self._body.arrays[n].rest if not isinstance(access.atoms[d], int)
        ]

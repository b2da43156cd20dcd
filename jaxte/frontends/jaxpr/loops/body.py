"""What the body of a ``scan`` does with each of the arrays that it hands on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend.core import Literal

from jaxte.frontends.jaxpr.loops.accesses import Access, read_of
from jaxte.frontends.jaxpr.loops.counters import Counters, Position, counted
from jaxte.frontends.jaxpr.loops.masks import Masks, Tables
from jaxte.frontends.jaxpr.loops.tracked import Source, Tracked, Unclear, tracked
from jaxte.lang.limits import MOST_LARGER

_ADDS = ("add", "add_any", "sub")


@dataclass(frozen=True, eq=False)
class Sum:
    """A number or an array to which each step adds.

    Attributes:
        links: the equations that add, one after the other.
        terms: what each adds, with its sign.
    """

    links: tuple[Any, ...]
    terms: tuple[tuple[Any, int], ...]


@dataclass(frozen=True, eq=False)
class Body:
    """A body with its carries told apart; all numbers of carries are places among them.

    Attributes:
        jaxpr: its equations.
        consts: how many arguments are the same in each step; those of the jaxpr itself stand before them.
        carried: how many are handed on.
        counters: the numbers that are known.
        still: carries that no step changes.
        counts: carries that are known in each step.
        arrays: carries of which rows are written.
        sums: carries to which each step adds and that it does not read.
        states: all others but counters.
        lifted: reads of an array from before the loop at positions that are known.
        refused: why a carry is a state, by its number.
    """

    jaxpr: Any
    consts: int
    carried: int
    counters: Counters
    still: Set[int]
    counts: Set[int]
    arrays: Mapping[int, Tracked]
    sums: Mapping[int, Sum]
    states: Sequence[int]
    lifted: Mapping[int, Access]
    refused: Mapping[int, str]

    @property
    def taken(self) -> list[Any]:
        """What a step takes of the carries."""
        return list(self.jaxpr.invars[self.consts : self.consts + self.carried])

    @property
    def returned(self) -> list[Any]:
        return list(self.jaxpr.outvars[: self.carried])

    @property
    def reads(self) -> dict[int, tuple[int, Access, list[Source]]]:
        """Reads of rows, by equation, with the carry that they are of."""
        return {e: (n, *found) for n, a in self.arrays.items() for e, found in a.rows.items()}

    @property
    def is_map(self) -> bool:
        """Whether no step needs what another one has made."""
        return not self.states and not any(g for a in self.arrays.values() for g in a.lags)


def body_of(
    closed: Any,
    consts: int,
    given: Sequence[Position | None],
    known: Mapping[Any, Any],
    carried: int,
    steps: int,
) -> Body:
    """The body ``closed``, of whose arguments ``given`` are the numbers and ``known`` the arrays that are known."""
    jaxpr = closed.jaxpr
    own = {v: p for v, p in zip(jaxpr.invars, given, strict=True) if p is not None}
    taken, returned = jaxpr.invars[consts : consts + carried], jaxpr.outvars[:carried]
    firsts = [own.pop(v, None) for v in taken]
    counters = counted(jaxpr, own, list(zip(taken, returned, firsts, strict=True)), steps)
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    masks = Masks(jaxpr.eqns, jaxpr.outvars, Tables(makers, counters, known))
    sorting = _Sorting(masks, counters, jaxpr)
    for n, (first, last) in enumerate(zip(taken, returned, strict=True)):
        sorting.carry(n, first, last)
    states, sums = sorting.states, sorting.sums
    free = not states and not any(g for a in sorting.arrays.values() for g in a.lags)
    states = sorted(states if free else [*states, *sums])
    before = {*jaxpr.constvars, *jaxpr.invars[:consts], *(taken[n] for n in sorting.still)}
    lifted = _lifted(jaxpr, before, sorting.arrays, counters)
    return Body(
        jaxpr,
        consts,
        carried,
        counters,
        sorting.still,
        sorting.counts,
        sorting.arrays,
        sums if free else {},
        states,
        lifted,
        sorting.refused,
    )


class _Sorting:
    """Carries told apart, by their numbers."""

    def __init__(self, masks: Masks, counters: Counters, jaxpr: Any) -> None:
        self.masks, self.counters, self.jaxpr = masks, counters, jaxpr
        self.still: set[int] = set()
        self.counts: set[int] = set()
        self.arrays: dict[int, Tracked] = {}
        self.sums: dict[int, Sum] = {}
        self.states: list[int] = []
        self.refused: dict[int, str] = {}

    def carry(self, n: int, first: Any, last: Any) -> None:
        """Adds one carry, which a step takes as ``first`` and returns as ``last``."""
        if self.counters.of(first) is not None:
            self.counts.add(n)
        elif last is first:
            self.still.add(n)
        elif not any(m > 1 for m in first.aval.shape) or not self._array(n, first, last):
            total = _sum(first, last, self.masks)
            if total is None:
                self.states.append(n)
            else:
                self.sums[n] = total

    def _array(self, n: int, first: Any, last: Any) -> bool:
        try:
            if sum(v is last for v in self.jaxpr.outvars) > 1:
                raise Unclear("returned twice")
            self.arrays[n] = tracked(first, last, self.jaxpr.eqns, self.masks, self.counters)
        except Unclear as unclear:
            self.refused[n] = str(unclear)
        return n in self.arrays


def _sum(first: Any, last: Any, masks: Masks) -> Sum | None:
    """The additions that lead from one to the other, where nothing else reads what is between."""
    links: list[Any] = []
    terms: list[tuple[Any, int]] = []
    current = first
    while current is not last:
        readers = masks.readers(current)
        if len(readers) != 1 or readers[0].primitive.name not in _ADDS:
            return None
        (eqn,) = readers
        place = [a is current for a in eqn.invars]
        if sum(place) != 1 or (eqn.primitive.name == "sub" and not place[0]):
            return None
        if any(a.aval.shape != first.aval.shape or a.aval.dtype != first.aval.dtype for a in eqn.invars):
            return None
        links.append(eqn)
        terms.append((eqn.invars[1 - place.index(True)], -1 if eqn.primitive.name == "sub" else 1))
        current = eqn.outvars[0]
    passed = [first, *(eqn.outvars[0] for eqn in links)]
    if masks.readers(current) or [v for v in masks.returned if v in passed] != [last]:
        return None
    if not links or np.dtype(first.aval.dtype).kind not in "fc":
        return None
    return Sum(tuple(links), tuple(terms))


def _lifted(
    jaxpr: Any, before: Set[Any], arrays: Mapping[int, Tracked], counters: Counters
) -> dict[int, Access]:
    """Reads of arrays from before the loop at known positions that the counter moves."""
    before = before | {v for a in arrays.values() for v in a.versions}
    rows = {n for a in arrays.values() for n in a.rows}
    found: dict[int, Access] = {}
    for eqn in jaxpr.eqns:
        access = read_of(eqn, counters) if id(eqn) not in rows else None
        if access is None or isinstance(access.array, Literal) or access.array not in before:
            continue
        moving = [d for d, s in enumerate(access.starts) if s is not None and not s.is_still]
        if moving and all(s is not None for s in access.starts) and _is_small(access, moving, counters.steps):
            found[id(eqn)] = access
    return found


def _is_small(access: Access, moving: Sequence[int], steps: int) -> bool:
    """Whether what all steps read is not much more than the array that they read it from."""
    starts = [access.starts[d] for d in moving]
    if len(moving) > 1 and any(s is not None and s.outer for s in starts):
        return False
    if all(access.sizes[d] == 1 for d in moving):
        return True
    if len(moving) > 1 or any(s is not None and s.outer for s in starts):
        return False
    # Times the elements along the axis that moves, which all steps together read.
    return steps * access.sizes[moving[0]] <= MOST_LARGER * access.array.aval.shape[moving[0]]

"""Loops that read and write arrays at their counter, written anew: inner loops first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend.core import Literal

from jaxte.bridge.jaxprs import scan_counts
from jaxte.frontends.jaxpr.equations.known import is_symbolic
from jaxte.frontends.jaxpr.equations.stands import Instead, as_it_stands, opened, traced
from jaxte.frontends.jaxpr.equations.steps import Slot, grouped, known_array, slot_of
from jaxte.frontends.jaxpr.loops.body import Body, body_of
from jaxte.frontends.jaxpr.loops.counters import Outer, Position, constant, counted
from jaxte.frontends.jaxpr.loops.emit import Loop
from jaxte.frontends.jaxpr.loops.worth import at_once, gain

_SHORTEST = 3  # steps


def counted_loops(closed: Any, slots: Mapping[Any, Slot]) -> Instead | None:
    """``closed`` with its loops written anew; None where none of them gains."""
    jaxpr = closed.jaxpr
    if not any(eqn.primitive.name == "scan" for eqn in jaxpr.eqns) or _has_symbols(closed):
        return None
    told: list[tuple[Any, str]] = []

    def known(atom: Any) -> Any:
        return slot_of(atom, slots).known

    def position(atom: Any) -> Position | None:
        value = known(atom)
        return (
            constant(value, 1) if value is not None and value.size == 1 and value.dtype.kind in "iu" else None
        )

    level = _Level(closed, _Known(position, known), told)
    made = level.traced()
    return Instead(made, loops=tuple(told)) if level.is_changed else None


@dataclass(frozen=True)
class _Known:
    """What is known of the variables of a level: numbers, and arrays."""

    position: Any
    array: Any


class _Level:
    """A jaxpr in which loops stand."""

    def __init__(self, closed: Any, known: _Known, told: list[tuple[Any, str]]) -> None:
        self.closed, self.known, self.told = closed, known, told
        self.is_changed = False

    def traced(self) -> Any:
        return traced(self.closed, lambda eqn, operands: self._loop(eqn, operands) if _is_loop(eqn) else None)

    def _loop(self, eqn: Any, operands: Sequence[Any]) -> list[Any] | None:
        """The results of a ``scan`` written anew; None where it stays."""
        p = eqn.params
        (consts, carried), steps = scan_counts(p), p["length"]
        closed = opened(p["jaxpr"], grouped)
        numbers, outer = self._numbers(eqn, operands, steps)
        inner = self._inside(eqn, closed, numbers)
        changed = inner is not closed
        known = _arrays_of(inner, [self.known.array(a) for a in eqn.invars[:consts]])
        body = body_of(inner, consts, numbers, known, carried, steps)
        reason = gain(body)
        if reason:
            together = body.is_map and at_once(body)
            self.told.append((eqn, _said(body, together)))
            self.is_changed = True
            return Loop(body, p, inner.consts, operands, outer, together).run()
        if _refused(body):
            self.told.append((eqn, _kept(body)))
        if not changed:
            return None
        self.is_changed = True
        return as_it_stands(eqn.replace(params={**p, "jaxpr": inner}), operands)

    def _numbers(
        self, eqn: Any, operands: Sequence[Any], steps: int
    ) -> tuple[list[Position | None], dict[Outer, Any]]:
        """What is known of the arguments of a body, and the values of what counts around it."""
        p = eqn.params
        found: list[Position | None] = []
        outer: dict[Outer, Any] = {}
        moving: list[tuple[Position, Outer]] = []
        for n, (atom, value) in enumerate(zip(eqn.invars, operands, strict=True)):
            if n >= sum(scan_counts(p)):
                found.append(_by_step(self.known.array(atom), steps, p["reverse"]))
                continue
            around = self.known.position(atom)
            if around is None:
                found.append(None)
            elif around.is_still and not around.outer:
                found.append(constant(around.numbers[0], steps))
            else:
                found.append(_relative(around, value, steps, moving, outer))
        return found, outer

    def _inside(self, eqn: Any, closed: Any, numbers: Sequence[Position | None]) -> Any:
        """The body of a loop with the loops within it written anew."""
        if not any(map(_is_loop, closed.jaxpr.eqns)):
            return closed
        p = eqn.params
        jaxpr = closed.jaxpr
        consts, carried = scan_counts(p)
        own = {v: n for v, n in zip(jaxpr.invars, numbers, strict=True) if n is not None}
        taken = jaxpr.invars[consts : consts + carried]
        firsts = [own.pop(v, None) for v in taken]
        counters = counted(
            jaxpr, own, list(zip(taken, jaxpr.outvars[:carried], firsts, strict=True)), p["length"]
        )
        arrays = _arrays_of(closed, [self.known.array(a) for a in eqn.invars[:consts]])
        level = _Level(closed, _Known(counters.of, lambda a: _array_at(a, arrays)), self.told)
        made = level.traced()
        return opened(made, grouped) if level.is_changed else closed


def _relative(
    around: Position, value: Any, steps: int, moving: list[tuple[Position, Outer]], outer: dict[Outer, Any]
) -> Position:
    """A number that counts around a loop: the same as another one but for a constant, or one of its own."""
    for other, own in moving:
        apart = around.plus(other, -1)
        if not apart.outer and apart.is_still:
            return Position(np.full(steps, int(apart.numbers[0])), ((own, 1),))
    made = Outer(around.least, around.most)
    moving.append((around, made))
    outer[made] = value
    return Position(np.zeros(steps, int), ((made, 1),))


def _by_step(array: Any, steps: int, reverse: bool) -> Position | None:
    if array is None or array.dtype.kind not in "iu" or array.size != steps:
        return None
    return Position(np.asarray(array).reshape(-1).astype(int)[:: -1 if reverse else 1])


def _arrays_of(closed: Any, consts: Sequence[Any]) -> dict[Any, Any]:
    """What is known of the arrays that are the same in each step."""
    jaxpr = closed.jaxpr
    found = dict(zip(jaxpr.invars, consts, strict=False))
    found |= {v: known_array(c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)}
    return {v: a for v, a in found.items() if a is not None}


def _array_at(atom: Any, arrays: Mapping[Any, Any]) -> Any:
    return np.asarray(atom.val) if isinstance(atom, Literal) else arrays.get(atom)


def _is_loop(eqn: Any) -> bool:
    p = eqn.params
    return (
        eqn.primitive.name == "scan"
        and not eqn.effects
        and isinstance(p["length"], int)
        and p["length"] >= _SHORTEST
    )


def _has_symbols(closed: Any) -> bool:
    return any(is_symbolic(v.aval) for eqn in closed.jaxpr.eqns for v in (*eqn.invars, *eqn.outvars))


def _said(body: Body, together: bool) -> str:
    """What a loop that is written anew does."""
    steps = body.counters.steps
    told = []
    if together:
        told.append(f"its {steps:,} steps are independent: one statement over all of them")
        told += [f"{_many(len(body.sums), 'sum')} taken behind it"] if body.sums else []
    elif body.arrays:
        handed = len(body.states) + len(body.sums)
        told.append(f"{_many(len(body.arrays), 'array')} stacked by rows, {handed} are handed on")
    if body.lifted and not together:
        told.append(f"{_many(len(body.lifted), 'row')} taken by each step")
    return "; ".join([*told, *([_kept(body)] if _refused(body) else [])])


def _many(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


def _refused(body: Body) -> dict[int, str]:
    """Why arrays are handed on; what is a sum is none of them."""
    return {n: why for n, why in body.refused.items() if n in body.states}


def _kept(body: Body) -> str:
    own = [f"{body.taken[n].aval.str_short()} is {why}" for n, why in sorted(_refused(body).items())]
    return "handed on as a whole: " + ", ".join(own)

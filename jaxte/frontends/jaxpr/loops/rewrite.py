"""Loops that read and write arrays at their counter, written anew where that gains in seconds on the platform: inner loops first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jax.extend.core import Literal

from jaxte.bridge.calls.options import planned_facts
from jaxte.bridge.jaxprs import scan_counts
from jaxte.frontends.jaxpr.equations.known import is_symbolic
from jaxte.frontends.jaxpr.equations.stands import Instead, as_it_stands, opened, traced
from jaxte.frontends.jaxpr.equations.steps import Slot, grouped, known_array, slot_of
from jaxte.frontends.jaxpr.loops.accesses import Access
from jaxte.frontends.jaxpr.loops.body import Body, body_of
from jaxte.frontends.jaxpr.loops.counters import Outer, Position, constant, counted
from jaxte.frontends.jaxpr.loops.emit import Loop
from jaxte.lang.limits import MOST_KEPT, SEVERAL

_VIEWS = ("squeeze", "reshape", "expand_dims", "convert_element_type")
_PRODUCTS = ("mul", "dot_general")
_ALONE = ("cond", "while", "custom_vjp_call")  # of which all steps together compute more than one does


def gain(body: Body) -> bool:
    """Whether rows take the place of arrays that each step's derivative would copy or add to."""
    return bool(body.arrays or body.lifted) and (body.is_map or _rows(body) > 0)


def _rows(body: Body) -> int:
    """Bytes of arrays that are handed on, or added to in the backward pass, in each step, less those of rows."""
    arrays = [(a.first.aval, a.row_size) for a in body.arrays.values()]
    arrays += [(access.array.aval, prod(access.sizes)) for access in body.lifted.values()]
    return sum((prod(aval.shape) - row) * aval.dtype.itemsize for aval, row in arrays if _is_moved(aval))


def _is_moved(aval: Any) -> bool:
    return np.dtype(aval.dtype).kind in "fc" or str(aval.dtype) == "bfloat16"


def at_once(body: Body) -> bool:
    """Whether all steps are computed together."""
    written = {id(w.eqn) for a in body.arrays.values() for w in a.writes}
    eqns = [eqn for eqn in body.jaxpr.eqns if id(eqn) not in written]
    if any(eqn.primitive.name in _ALONE for eqn in eqns) or _reads_again(body, eqns):
        return False
    made = [prod(v.aval.shape) * np.dtype(v.aval.dtype).itemsize for eqn in eqns for v in eqn.outvars]
    # Bytes of one intermediate of all steps.
    return max(made, default=0) * body.counters.steps <= MOST_KEPT


def _reads_again(body: Body, eqns: Sequence[Any]) -> bool:
    """Whether steps are products of rows with vectors and numbers alone, and reading rows for each of them takes longer than the steps of a loop.

    A loop reads a row once for all products of it. Together they are one statement each, which reads the whole matrix, and one whose sum is
    taken writes it.
    """
    facts = planned_facts()
    step = facts.wide_step / facts.rates.step
    return _bytes_again(body, eqns) / facts.rates.stream > step


def _bytes_again(body: Body, eqns: Sequence[Any]) -> int:
    """Bytes of rows that all products of a step but the first read; 0 where a step computes anything else of more than one number."""
    rows: dict[Any, Any] = {v: v for v in body.jaxpr.invars[body.consts + body.carried :]}
    size: dict[Any, int] = {}
    links = {id(eqn) for total in body.sums.values() for eqn in total.links}
    products: Counter[Any] = Counter()
    for eqn in eqns:
        if len(eqn.outvars) != 1:
            return 0
        (out,), name = eqn.outvars, eqn.primitive.name
        own = {rows[a]: a for a in eqn.invars if not isinstance(a, Literal) and a in rows}
        if id(eqn) in body.lifted or id(eqn) in body.reads:
            access = body.lifted[id(eqn)] if id(eqn) in body.lifted else body.reads[id(eqn)][1]
            rows[out] = _place(access)
        elif own and name in _VIEWS:
            (rows[out],) = own
        elif own and name in _PRODUCTS and (name == "mul" or out.aval.size == 1):
            products.update(own.keys())  # of one number too, which is read in no time
            size |= {row: a.aval.size * a.aval.dtype.itemsize for row, a in own.items()}
        elif out.aval.size > 1 and id(eqn) not in links and not _repeats_number(eqn):
            return 0
    return sum((many - 1) * size[row] for row, many in products.items())


def _place(access: Access) -> Any:
    """The same for reads of the same rows."""
    starts = (p and (p.numbers.tobytes(), p.outer) for p in access.starts)
    return access.array, access.sizes, tuple(starts)


def _repeats_number(eqn: Any) -> bool:
    return eqn.primitive.name == "broadcast_in_dim" and eqn.invars[0].aval.size == 1


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
        and p["length"] >= SEVERAL
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

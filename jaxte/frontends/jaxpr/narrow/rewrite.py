"""What is read of each array between the results of a function and its arguments, and the function without what nothing reads.

Slices stand before what maps over the positions that they take. Functions with a tangent of their own, such as ``jax.nn.relu``, are narrowed
together with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxte.frontends.jaxpr.equations.stands import Instead, as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, flat, slot_of, slots_of
from jaxte.frontends.jaxpr.equations.table import Unraised
from jaxte.frontends.jaxpr.narrow.boxes import Box, is_whole, same, shape_of, taken, united, whole
from jaxte.frontends.jaxpr.narrow.rows import ROWS, narrows, work
from jaxte.frontends.jaxpr.taken import calls_itself, tangent_jaxpr
from jaxte.lang.limits import LARGE_RESULT, MARGIN, NESTED

TAKES = frozenset(["slice", "gather"])  # what takes a part, whose own work is none that could be left out


@dataclass(frozen=True)
class Narrowed:
    """A step of which a part is computed: this part, and what of each operand it needs."""

    box: Box
    needs: tuple[Box, ...]


@dataclass(frozen=True)
class Demand:
    """What is read of arrays.

    Attributes:
        steps: those that are narrowed.
        held: the part of each array that is computed; arrays that are not here are computed in whole.
        unread: steps whose results nothing reads.
        read: the part of each array that is read.
    """

    steps: dict[Step, Narrowed]
    held: dict[Slot, Box]
    unread: frozenset[Step]
    read: dict[Slot, Box]

    def box(self, slot: Slot) -> Box:
        return self.held.get(slot, whole(len(slot.shape)))


def demand_of(
    steps: Sequence[Step], results: Sequence[tuple[Slot, Box]], parted: Sequence[Slot] = ()
) -> Demand:
    """What ``steps`` have to compute for parts of ``results``; of arrays in ``parted`` just what is read will be there."""
    read: dict[Slot, list[Box]] = {}
    narrowed: dict[Step, Narrowed] = {}
    held: dict[Slot, Box] = {}
    unread = []
    for slot, box in results:
        read.setdefault(slot, []).append(box)
    for step in reversed(steps):
        if not step.eqn.effects and not any(slot in read for slot in step.outputs):
            unread.append(step)
            continue
        found = _narrowed(step, read)
        if found is not None:
            narrowed[step] = found
            held[step.outputs[0]] = found.box
        needs = [whole(len(s.shape)) for s in step.inputs] if found is None else found.needs
        for slot, box in zip(step.inputs, needs, strict=True):
            read.setdefault(slot, []).append(box)
    asked = {slot: united(boxes, slot.shape) for slot, boxes in read.items()}
    held |= {slot: asked[slot] for slot in parted if slot in asked}
    return Demand(narrowed, held, frozenset(unread), asked)


def _narrowed(step: Step, read: dict[Slot, list[Box]]) -> Narrowed | None:
    row = ROWS.get(step.name)
    if row is None or len(step.outputs) != 1 or step.eqn.effects:
        return None
    (out,) = step.outputs
    if 0 in out.shape:
        return None
    box = united(read[out], out.shape)
    needs = row.needs(step, box)
    if needs is None or (is_whole(box) and all(map(is_whole, needs))):
        return None
    return Narrowed(box, tuple(needs))


def pays(steps: Sequence[Step], demand: Demand) -> bool:
    """Whether much of the work of ``steps`` is left out."""
    total = left = 0.0
    for step in steps:
        if step in demand.unread or step.name not in ROWS or step.name in TAKES or len(step.outputs) != 1:
            continue
        (out,) = step.outputs
        own = work(step, [s.shape for s in step.inputs], out.shape)
        total += own
        found = demand.steps.get(step)
        if found is not None:
            shapes = [shape_of(b, s.shape) for b, s in zip(found.needs, step.inputs, strict=True)]
            own = work(step, shapes, shape_of(found.box, out.shape))
        left += own
    return total >= MARGIN * left and total - left >= LARGE_RESULT


def computed(
    steps: Sequence[Step], demand: Demand, given: Mapping[Slot, Any], results: Sequence[Slot]
) -> list[Any]:
    """What is held of ``results``, from what is held of arrays that come from outside."""
    env = dict(given)

    def read(slot: Slot) -> Any:
        return env.get(slot, slot.known)

    for step in steps:
        if step in demand.unread:
            continue
        found = demand.steps.get(step)
        if found is None:
            made = as_it_stands(step.eqn, [read(s) for s in step.inputs])
        else:
            operands = [
                _part(step, read(s), demand.box(s), box)
                for s, box in zip(step.inputs, found.needs, strict=True)
            ]
            made = [ROWS[step.name].make(step, found.box, operands)]
        env |= dict(zip(step.outputs, made, strict=True))
    return [read(slot) for slot in results]


def _part(step: Step, value: Any, held: Box, wanted: Box) -> Any:
    if same(held, wanted):
        return value
    if isinstance(value, np.ndarray):
        return taken(value, held, wanted)
    return in_place_of(step.eqn, lambda x: taken(x, held, wanted), value)


def narrowed(closed: Any, steps: Sequence[Step], slots: Mapping[Any, Slot]) -> Instead | None:
    """``closed``, whose equations are ``steps``, with what is read of each array only; None where little would be left out."""
    if not any(step.name in TAKES and _is_computed(step.inputs[0]) for step in steps):
        return None
    jaxpr = closed.jaxpr
    results = [slot_of(v, slots) for v in jaxpr.outvars]
    demand = demand_of(steps, [(slot, whole(len(slot.shape))) for slot in results])
    if not pays(steps, demand):
        return None

    def run(*args: Any) -> list[Any]:
        env = {slots[v]: const for v, const in zip(jaxpr.constvars, closed.consts, strict=True)}
        env |= {slots[v]: arg for v, arg in zip(jaxpr.invars, args, strict=True)}
        return computed(steps, demand, env, results)

    return Instead(jax.make_jaxpr(run)(*closed.in_avals), tuple(_parts(steps, demand)))


def _is_computed(slot: Slot) -> bool:
    """Whether an array is neither given nor known."""
    return slot.origin is not None and slot.known is None


def _parts(steps: Sequence[Step], demand: Demand) -> Iterator[tuple[Any, str]]:
    for step in steps:
        found = demand.steps.get(step)
        if found is not None and not is_whole(found.box) and step.name not in TAKES:
            (out,) = step.outputs
            told = [f"{len(p)} of {e}" for p, e in zip(found.box, out.shape, strict=True) if p is not None]
            yield step.eqn, f"{' x '.join(told)} positions are read, and computed"


# functions whose tangents are being looked at: a tangent that calls its function says nothing new
_LOOKED_AT: list[str] = []


class _Part:
    """A jaxpr of which a part of one result is computed."""

    def __init__(self, closed: Any, box: Box, result: int = 0) -> None:
        jaxpr = closed.jaxpr
        slots = slots_of(closed)
        self.steps: list[Step] = [s for _, found in flat(jaxpr.eqns, slots) for s in found]
        self.result = slot_of(jaxpr.outvars[result], slots)
        self.inputs = [slots[v] for v in jaxpr.invars]
        self.demand: Demand = demand_of(self.steps, [(self.result, box)], self.inputs)
        self.consts = {slots[v]: c for v, c in zip(jaxpr.constvars, closed.consts, strict=True)}

    @property
    def needs(self) -> list[Box | None]:
        """What it needs of each operand; None where it needs nothing."""
        return [self.demand.read.get(slot) for slot in self.inputs]

    def __call__(self, *operands: Any) -> Any:
        given = self.consts | dict(zip(self.inputs, operands, strict=True))
        return computed(self.steps, self.demand, given, [self.result])[0]


def _own(step: Step, box: Box) -> _Part:
    return _Part(step.eqn.params["call_jaxpr"], box)


def _tangent(step: Step, box: Box) -> tuple[_Part, list[int]]:
    """The tangent, and which operands have one."""
    rule, moving = tangent_jaxpr(step.eqn)
    return _Part(rule, box, 1), moving


def _calls_itself(step: Step) -> bool:
    """Whether the rule calls the function for its value, so that derivatives of derivatives have the rule again."""
    rule, _ = tangent_jaxpr(step.eqn)
    found = _Part(rule, whole(len(step.outputs[0].shape)))
    origin = found.result.origin
    if origin is None or origin.name != step.name:
        return False
    return calls_itself(step, origin, found.inputs, origin.inputs)


def _made(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    call = jax.custom_jvp(_own(step, box))

    def moved(xs: Sequence[Any], ts: Sequence[Any]) -> Any:
        tangent, moving = _tangent(step, box)
        return call(*xs), tangent(*xs, *(ts[n] for n in moving))

    call.defjvp(moved)
    return in_place_of(step.eqn, call, *operands)


@narrows("custom_jvp_call", make=_made)
def _own_tangent(step: Step, box: Box) -> Sequence[Box] | None:
    """What the function needs, where its tangent needs no more, and the same of tangents."""
    if is_whole(box) or len(_LOOKED_AT) >= NESTED:
        return None
    try:
        return _needed_with_tangent(step, box) if _calls_itself(step) else None
    except Unraised:
        return None


def _needed_with_tangent(step: Step, box: Box) -> Sequence[Box] | None:
    needed = _own(step, box).needs
    told = [[b] for b in needed]
    key = str(step.eqn.params["call_jaxpr"])
    if key not in _LOOKED_AT:
        _LOOKED_AT.append(key)
        try:
            tangent, moving = _tangent(step, box)
        finally:
            _LOOKED_AT.pop()
        for n, own in enumerate(told):
            own += [tangent.needs[n]]
            own += [tangent.needs[len(told) + moving.index(n)]] if n in moving else []
    found = [[b for b in own if b is not None] for own in told]
    if any(not same(b, own[0]) for own in found for b in own):
        return None
    return [own[0] if own else whole(len(s.shape)) for own, s in zip(found, step.inputs, strict=True)]

"""What is read of each array between the results of a function and its arguments, and the computation of just that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.stands import as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.narrow.boxes import Box, is_whole, same, shape_of, taken, united, whole
from jaxte.frontends.jaxpr.narrow.rows import ROWS, work

TAKES = frozenset(["slice", "gather"])  # what takes a part, whose own work is none that could be left out
_LEAST_SAVED = 0.2  # of all operations
_WORTH = 1 << 16  # operations


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
    return total - left >= max(_LEAST_SAVED * total, _WORTH)


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

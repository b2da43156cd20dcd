"""Computes what is read of each array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.stands import as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.narrow.boxes import Box, same, taken
from jaxte.frontends.jaxpr.narrow.demand import Demand
from jaxte.frontends.jaxpr.narrow.rows import ROWS


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

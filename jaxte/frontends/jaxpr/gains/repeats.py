"""Elements that are repeated, and of which nothing but sums of functions is taken: each is computed once, and counted."""

from __future__ import annotations

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads

_MOVES = ("broadcast_in_dim", "reshape", "copy")
_MOST_READERS = 16


def is_counted(slot: Slot) -> bool:
    """Whether all that is made of ``slot`` are functions of its single elements, numbers beside them, summed to one number."""
    family, stack, summed = {slot}, [slot], False
    while stack:
        for step in stack.pop().readers:
            if step.name == "reduce_sum" and step.outputs[0].shape == ():
                summed = True
                continue
            if len(family) > _MOST_READERS or not _stays(step, family):
                return False
            if step.outputs[0] not in family:
                family.add(step.outputs[0])
                stack.append(step.outputs[0])
    return summed


def _stays(step: Step, family: set[Slot]) -> bool:
    """Whether ``step`` makes functions of single elements of ``family``, or moves them."""
    rule = RULES.get(step.name)
    if len(step.outputs) != 1 or rule is None:
        return False
    if step.name in _MOVES:
        return True
    others = [s for s in step.inputs if s not in family and (s.known is None or np.size(s.known) != 1)]
    return not others and rule.reads in (Reads.POINTWISE, Reads.LINEAR)

"""Sums of an array that read or make its elements twice: beside single elements of it, of shifted parts of it, or of elements that are repeated.

What flows back to an array whose sum and single elements are added (the trapezoidal rule, Simpson's) is one number along the axis of the sum, with others
at a few places. JAX pads what flows back into each part. Elements that are repeated are computed once, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.pairs import elements

_ADDS = ("add", "sub", "add_any")
_SCALES = ("mul", "div", "neg")
_MOST_STEPS = 32
_LEAST = 1 << 13  # elements of the array, of fewer of which a sum takes no time


def sums_beside_ends(step: Step) -> bool:
    """Whether ``step`` sums a large array of which else only some single elements along the axis of the sum are read; one is as good in JAX."""
    if step.name != "reduce_sum" or elements(step.inputs[0]) < _LEAST or step.outputs[0].shape == ():
        return False
    source, axes = step.inputs[0], step.eqn.params["axes"]
    others = [reader for reader in source.readers if reader is not step]
    return len(others) > 1 and all(
        r.name == "slice" and all(r.outputs[0].shape[d] == 1 for d in axes) for r in others
    )


def sums_shifts(step: Step) -> bool:
    """Whether ``step`` sums several parts of one large array, shifted along what it sums over, strided or with weights that are known."""
    if step.name != "reduce_sum":
        return False
    weights: list[Slot] = []
    parts = list(_parts(step.inputs[0], weights))
    if len(parts) < 2 or any(part is None or part.name != "slice" for part in parts):
        return False
    slices = [part for part in parts if part is not None]
    source = slices[0].inputs[0]
    if any(s.inputs[0] is not source for s in slices) or elements(source) < _LEAST:
        return False
    weighted = any(np.size(w.known) > 1 for w in weights)
    if not weighted and not any(max(s.eqn.params["strides"] or (1,)) > 1 for s in slices):
        return False
    return any(slices[0].outputs[0].shape[d] < source.shape[d] for d in step.eqn.params["axes"])


def _parts(slot: Slot, weights: list[Slot]) -> Iterator[Step | None]:
    """The steps of which ``slot`` is a sum with ``weights`` that are known; None where something else is added."""
    stack = [slot]
    for _ in range(_MOST_STEPS):
        if not stack:
            return
        step = stack.pop().origin
        moving = [] if step is None else [s for s in step.inputs if s.known is None]
        wanted = 0 if step is None else 2 if step.name in _ADDS else 1 if step.name in _SCALES else 0
        if step is not None and len(moving) == wanted > 0:
            stack += moving
            weights += [s for s in step.inputs if s.known is not None]
        else:
            yield step
    yield None


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

"""Regions that are the same but for the arrays they read: layers of one shape, whose code is made once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.plan.regions import Equation, Fate


def signature(group: Sequence[Equation], steps: Sequence[Step], results: Sequence[Slot]) -> Hashable | None:
    """What the code of a product depends on that is raised by itself; None for other groups."""
    if any(e.fate is not Fate.ALONE for e in group) or any(
        x.known is not None for s in steps for x in s.inputs
    ):
        return None
    numbers: dict[Slot, int] = {}
    for step in steps:
        for slot in (*step.inputs, *step.outputs):
            numbers.setdefault(slot, len(numbers))
    listed = [
        (s.name, str(s.eqn.params), *((numbers[x], x.shape, x.dtype) for x in (*s.inputs, *s.outputs)))
        for s in steps
    ]
    return tuple(listed), tuple(numbers[slot] for slot in results)

"""Arrays that a region reads without a derivative: in comparisons, behind ``stop_gradient``, rounded.

What makes them may have no reverse derivative at all (a ``while_loop``), and JAX asks for none where nothing flows back.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.lang.dtypes import is_inexact

FLAT = frozenset(["stop_gradient", "floor", "ceil", "round", "sign"])


def still(steps: Sequence[Step], results: Sequence[Slot], read: Sequence[Slot]) -> frozenset[int]:
    """Numbers of the inexact arrays of ``read`` through which no change reaches ``results``."""
    moving = {slot for slot in results if is_inexact(slot.dtype)}
    for step in reversed(steps):
        if step.name not in FLAT and not moving.isdisjoint(step.outputs):
            moving.update(slot for slot in step.inputs if is_inexact(slot.dtype))
    return frozenset(n for n, slot in enumerate(read) if is_inexact(slot.dtype) and slot not in moving)

"""What a derivative may flow through, and what is the same in each turn of a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from jax.core import Tracer

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.lang.dtypes import is_inexact

FLAT = frozenset(["stop_gradient", "floor", "ceil", "round", "sign"])


def moving(steps: Iterable[Step], given: Iterable[Slot]) -> set[Slot]:
    """What has a derivative by the arrays ``given``."""
    found = {slot for slot in given if is_inexact(slot.dtype)}
    for step in steps:
        if step.name not in FLAT and not found.isdisjoint(step.inputs):
            found.update(slot for slot in step.outputs if is_inexact(slot.dtype))
    return found


def given_to(closed: Any, slots: Mapping[Any, Slot], flows: Set[int] | None) -> list[Slot]:
    """What ``closed`` may be differentiated by: its arguments in ``flows``, and what it has from a function around it that is differentiated."""
    own = (v for n, v in enumerate(closed.jaxpr.invars) if flows is None or n in flows)
    traced = (v for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True) if isinstance(c, Tracer))
    return [slots[v] for v in (*own, *traced)]


def still_in(steps: Sequence[Step], given: Set[Slot]) -> set[Slot]:
    """What is made of the arrays ``given`` alone."""
    found = set(given)
    for step in steps:
        if all(slot in found or slot.known is not None for slot in step.inputs) and not step.eqn.effects:
            found.update(step.outputs)
    return found

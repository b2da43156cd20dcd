"""A function without what nothing reads: slices stand before what maps over the positions that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax

from jaxte.frontends.jaxpr.equations.stands import Instead
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, slot_of
from jaxte.frontends.jaxpr.narrow import own_derivatives
from jaxte.frontends.jaxpr.narrow.boxes import is_whole, whole
from jaxte.frontends.jaxpr.narrow.demand import TAKES, Demand, computed, demand_of, pays

_ = own_derivatives  # its row stands in the table


def narrowed(closed: Any, steps: Sequence[Step], slots: Mapping[Any, Slot]) -> Instead | None:
    """``closed``, whose equations are ``steps``, with what is read of each array only; None where little would be left out."""
    if not any(step.name in TAKES for step in steps):
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


def _parts(steps: Sequence[Step], demand: Demand) -> Iterator[tuple[Any, str]]:
    for step in steps:
        found = demand.steps.get(step)
        if found is not None and not is_whole(found.box) and step.name not in TAKES:
            (out,) = step.outputs
            told = [f"{len(p)} of {e}" for p, e in zip(found.box, out.shape, strict=True) if p is not None]
            yield step.eqn, f"{' x '.join(told)} positions are read, and computed"

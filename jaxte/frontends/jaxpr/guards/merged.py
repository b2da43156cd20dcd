"""Steep steps that a function has twice, computed once before they are guarded.

Two branches that both take ``lgamma(a)`` need it everywhere, and XLA computes it once. Each by itself is needed where its branch is taken, and two guards of one function by
different masks are two functions, as are one with a guard and one that needs none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import Literal

from jaxte.frontends.jaxpr.equations.called import kind_of
from jaxte.frontends.jaxpr.equations.stands import as_it_stands
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, slot_of


def merged(
    closed: Any, steps: Sequence[Step], slots: Mapping[Any, Slot], asked: Collection[Step]
) -> Any | None:
    """``closed``, whose equations are ``steps``, with equal ones computed once; None where none of those that are ``asked`` about is there twice."""
    names = Counter(step.name for step in steps)
    if all(names[step.name] == 1 for step in asked):
        return None
    same = _equal(steps)
    if {*same, *same.values()}.isdisjoint(asked):
        return None
    given = [slots[v] for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]

    def run(*args: Any) -> list[Any]:
        values = dict(zip(given, (*closed.consts, *args), strict=True))

        def read(slot: Slot) -> Any:
            return values.get(slot, slot.known)

        for step in steps:
            if step.is_known:
                continue
            first = same.get(step)
            made = (
                as_it_stands(step.eqn, [*map(read, step.inputs)])
                if first is None
                else map(read, first.outputs)
            )
            values.update(zip(step.outputs, made, strict=True))
        return [read(slot_of(v, slots)) for v in closed.jaxpr.outvars]

    return jax.make_jaxpr(run)(*closed.in_avals)


def _equal(steps: Sequence[Step]) -> dict[Step, Step]:
    """The first of several equal steps, of each of the others."""
    first: dict[Hashable, Step] = {}
    same: dict[Step, Step] = {}
    for step in steps:
        kind = kind_of(step.eqn)
        if kind is None:
            continue
        reads = (
            _as_first(s, same)
            for s, a in zip(step.inputs, step.eqn.invars, strict=True)
            if not isinstance(a, Literal)
        )
        own = first.setdefault((kind, *reads), step)
        if own is not step:
            same[step] = own
    return same


def _as_first(slot: Slot, same: Mapping[Step, Step]) -> Slot:
    """What the first of equal steps makes in place of ``slot``."""
    made = slot.origin
    return same[made].outputs[made.outputs.index(slot)] if made is not None and made in same else slot

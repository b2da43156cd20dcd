"""Arrays of dear functions that are known when a function is traced, as sines of positions are: computed once, where XLA computes them in each call.

XLA fuses such functions into every loop that reads them. What is held is what the rest of the program reads: a table as it is before it is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxte.bridge.price.operations import EXPONENTIALS, POWERS
from jaxte.frontends.jaxpr.equations.steps import Slot
from jaxte.frontends.jaxpr.gains.gains import MOVES
from jaxte.frontends.jaxpr.gains.sums import elements
from jaxte.frontends.jaxpr.plan.items import Known
from jaxte.frontends.jaxpr.plan.regions import Equation, Fate
from jaxte.lower.cost.paces import Asked, Paces
from jaxte.lower.cost.platform import Platform


def tables(
    listed: Sequence[Equation], slots: Mapping[Any, Slot], returned: Sequence[Any], facts: Platform
) -> dict[int, Known]:
    """What is not run of ``listed``, by its number: equations whose results are tables, and those that only tables are made of."""
    paces = facts.paces
    taken = {} if paces is None else {e.index: e for e in _tables(listed, paces, facts.asked)}
    found: dict[int, Known] = {}
    for entry in reversed(listed) if taken else ():
        made = entry.eqn.outvars
        inside = entry.readers and all(r.index in taken or r.index in found for r in entry.readers)
        if entry.fate is Fate.KNOWN and inside and not any(v in made for v in returned):
            found[entry.index] = Known(entry.index, (None,) * len(made))
        elif entry.index in taken:
            found[entry.index] = Known(entry.index, tuple(slots[v].known for v in made))
    return found


def _tables(listed: Sequence[Equation], paces: Paces, asked: Asked) -> Iterator[Equation]:
    """Known equations that take as long, with all that they are made of, as a step has to take of which another program is derived, and repeat nothing."""
    least = asked.each
    taken: dict[int, float] = {}
    for entry in listed:
        if entry.fate is not Fate.KNOWN:
            continue
        own = _seconds(entry, paces)
        sources = [s for s in entry.sources if s.index in taken]
        taken[entry.index] = own + sum(taken[s.index] for s in sources)
        grown = max((_size(s) for s in sources if taken[s.index] >= least), default=0)
        moves = all(step.name in MOVES for step in entry.steps)
        if taken[entry.index] >= least and not moves and (own >= least or _size(entry) <= grown):
            yield entry


def _seconds(entry: Equation, paces: Paces) -> float:
    """Seconds of the dear functions among its steps."""
    dear = ((step, p) for step in entry.steps for names, p in _dear(paces) if step.name in names)
    return sum(elements(step.outputs[0]) / pace for step, pace in dear)


def _dear(paces: Paces) -> tuple[tuple[frozenset[str], float], ...]:
    return (EXPONENTIALS, paces.exponential), (POWERS, paces.power)


def _size(entry: Equation) -> int:
    return sum(elements(slot) for slot in entry.steps[-1].outputs)

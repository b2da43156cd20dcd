"""Equations of states as tensors: what leads back to itself is a recurrence, everything else a definition."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang.expr import Read
from jaxte.lang.graphs import circles, reached
from jaxte.tensors.elementwise import copy_of
from jaxte.tensors.recurrences.inner import handed_on
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State, recurrences_in
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


def solved(
    equations: Mapping[State, Compute],
    places: Mapping[State, int],
    reverse: bool,
    beside: Mapping[Tensor, State] | None = None,
) -> dict[Tensor, Tensor]:
    """The tensors that obey ``equations``: those that lead back to themselves as recurrences, the others as they stand.

    ``beside`` has the states of tensors within steps, which are made where these are read.
    """
    copies = _copies(equations)
    if copies:
        rest = [s for s in equations if s not in copies]
        renewed = Rebuilt(copies).parts([equations[s] for s in rest])
        own = {s: as_compute(b, s.name) for s, b in zip(rest, renewed, strict=True)}
        made = solved(own, places, reverse, beside)
        return {**made, **{copy: made[state] for copy, state in copies.items()}}
    reads = {state: states_below(own, equations) for state, own in equations.items()}
    for other in [s for s in equations if beside and s in reached_states(reads, s)]:
        groups = recurrences_in(topological_order([equations[other]]))
        within = [s for t, s in (beside or {}).items() if isinstance(t, Recurrent) and t.group in groups]
        reads[other] = [*reads[other], *within]
    found: dict[Tensor, Tensor] = {}
    for block in circles(list(equations), reads.__getitem__):
        bodies = Rebuilt(found).parts([equations[s] for s in block])
        if len(block) == 1 and block[0] not in reached_states(reads, block[0]):
            found[block[0]] = bodies[0]
            continue
        definitions = tuple(b for b in bodies if isinstance(b, Compute))
        group = handed_on(Recurrence(tuple(block), definitions, tuple(places[s] for s in block), reverse))
        found.update(zip(block, group.tensors, strict=False))
    return found


def _copies(equations: Mapping[State, Compute]) -> dict[Tensor, Tensor]:
    """The states that are others element by element, with those, which are none: a loop would stack each of them."""
    own_state: dict[Tensor, State] = {**{s: s for s in equations}, **{own: s for s, own in equations.items()}}
    every = {s: _copied_state(own, own_state) for s, own in equations.items()}
    direct = {s: other for s, other in every.items() if other is not None}
    found: dict[Tensor, Tensor] = {}
    for state in direct:
        other, seen = direct[state], {state}
        while other in direct and other not in seen:
            seen.add(other)
            other = direct[other]
        found[state] = other
    return found if all(t not in found for t in found.values()) else {}


def _copied_state(own: Compute, states: Mapping[Tensor, State]) -> State | None:
    """The state that ``own`` is, which reads it or its definition."""
    match own.body:
        case Read(tensor, indices) if len(indices) == len(own.axes):
            return states.get(tensor) if all(map(operator.is_, indices, own.axes)) else None
    return None


def states_below(tensor: Tensor, states: Mapping[State, Any]) -> list[State]:
    """The states among ``states`` that ``tensor`` reads, itself or by way of others."""
    return [t for t in topological_order([tensor]) if isinstance(t, State) and t in states]


def reached_states(reads: Mapping[State, Sequence[State]], start: State) -> set[State]:
    """The states that ``start`` is made of, itself where it leads back."""
    return set(reached(reads[start], reads.__getitem__))


def as_compute(tensor: Tensor, name: str) -> Compute:
    """``tensor`` as a definition, a copy where it has none of its own."""
    return tensor if isinstance(tensor, Compute) else copy_of(tensor, name)

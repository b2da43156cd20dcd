"""Definitions over all positions of a recurrence that its loop makes position by position: ``dx[t] = du[t] * (1 - h[t] * h[t])`` beside ``du``.

Behind the loop such a definition reads every state, so that all of them would have to be there. In the loop that computes the states again they are
at hand, and what is stacked is the definition alone: the gradients of the inputs of a network over time, beside those of its weights, which the loop adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.derivatives.rebuilt import Rebuilt
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Expr, Read
from jaxte.lang.graphs import Members
from jaxte.lang.walk import reads_of
from jaxte.lower.recurrences.finals import Changed, changes
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.recurrences.steps import step_of, step_with
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class _Row:
    """A definition as one more tensor of a recurrence, with the axis of the positions at ``place``."""

    state: State
    definition: Compute
    place: int


def rows_in_loops(order: Sequence[Tensor], given: Members[Tensor], again: Members[Tensor]) -> Changed:
    """What stands for the tensors of ``order`` where definitions that read every position of those ``again`` are part of the loop from the other end.

    Args:
        order: all tensors, each after what it reads.
        given: those that exist already.
        again: tensors that are not to be read behind a loop, as they are computed again within one.
    """
    own = [t for t in order if t not in given]
    groups = dict.fromkeys(t.group for t in own if isinstance(t, Recurrent) and t not in again)
    readers = [g for g in groups if g.reverse and any(t in again for t in g.inputs)]
    if len(readers) != 1:
        return {}
    (group,) = readers
    rows: dict[Tensor, _Row] = {}
    longer = group
    below = set(topological_order(group.inputs))
    for tensor in own:
        if isinstance(tensor, Compute) and tensor not in below and any(t in again for t in tensor.inputs):
            row = _row(tensor, group)
            if row is None or not _is_met(group, _with(longer, row)):
                return {}
            rows[tensor] = row
            longer = _with(longer, row)
    numbers = {tensor: len(group.states) + n for n, tensor in enumerate(rows)}

    def body(tensor: Compute, known: Changed) -> Expr:
        if tensor not in rows:
            return tensor.body
        whole = known[group.tensors[0]]
        assert isinstance(whole, Recurrent)
        return Read(whole.group.tensors[numbers[tensor]], tensor.axes)

    return changes(own, body, {group: longer}) if rows else {}


def _row(tensor: Compute, group: Recurrence) -> _Row | None:
    """``tensor`` at the positions of ``group``, along the axis at which it reads the tensors of it; None where there is none."""
    places = {
        n
        for read in reads_of(tensor.body)
        if isinstance(read.tensor, Recurrent) and read.tensor.group is group
        for n, axis in enumerate(tensor.axes)
        if read.indices[group.places[read.tensor.position]] is axis and same_extent(axis.hi, group.extent)
    }
    if len(places) != 1:
        return None
    (place,) = places
    state = State(tensor.name, tensor.shape, tensor.dtype)
    states: dict[Tensor, Tensor] = dict(zip(group.tensors, group.states, strict=True))
    (definition,) = Rebuilt({**states, **{s: s for s in group.states}}).parts([tensor])
    assert isinstance(definition, Compute)
    return None if definition is tensor else _Row(state, definition, place)


def _is_met(group: Recurrence, longer: Recurrence) -> bool:
    """Whether a step of ``group`` has at hand what ``longer`` reads."""
    try:
        step = step_with(group, longer)
    except DefinitionError:  # it reads other positions than those that a step has
        return False
    return len(step.history) == len(step_of(group).history)


def _with(group: Recurrence, row: _Row) -> Recurrence:
    return Recurrence(
        (*group.states, row.state),
        (*group.definitions, row.definition),
        (*group.places, row.place),
        group.reverse,
    )

"""Graphs in which other tensors stand for those of recurrences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxte.lang.walk import with_tensors
from jaxte.planning.chains.rolled import renew
from jaxte.planning.conditions.plain_conditions import with_narrow_reads
from jaxte.tensors.recurrences.node import Recurrence, Recurrent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor

Stands = Callable[[Recurrence], Sequence[Tensor] | None]
"""What stands for the tensors of a recurrence, if others do."""


def with_other_groups(outputs: tuple[Tensor, ...], stands: Stands) -> tuple[Tensor, ...]:
    """``outputs`` with what ``stands`` for the tensors of recurrences; the outputs themselves where nothing does, or where a graph is not of definitions alone."""
    order = topological_order(outputs)
    groups = dict.fromkeys(t.group for t in order if isinstance(t, Recurrent))
    if not groups or not all(not t.inputs or type(t) in (Compute, Recurrent) for t in order):
        return outputs
    if not all(type(t) is Compute for group in groups for t in group.inside):
        return outputs
    new: dict[Tensor, Tensor] = {}
    for tensor in order:
        if isinstance(tensor, Recurrent) and tensor not in new:
            _renew_group(tensor.group, new, stands)
        elif isinstance(tensor, Compute):
            renew(tensor, new)
    return tuple(new.get(t, t) for t in outputs) if new else outputs


def _renew_group(group: Recurrence, new: dict[Tensor, Tensor], stands: Stands) -> None:
    """Adds what stands for the tensors of ``group``, itself or because of what it reads."""
    old = group.tensors
    if any(t in new for t in group.inputs):
        own = {**new}
        for tensor in group.inside:
            if isinstance(tensor, Compute):
                renew(tensor, own)
        found = (own.get(d, d) for d in group.definitions)
        definitions = tuple(d for d in found if isinstance(d, Compute))
        group = Recurrence(group.states, definitions, group.places, group.reverse)
    made = stands(group) or group.tensors
    new |= {before: after for before, after in zip(old, made, strict=True) if before is not after}


def without_held_ends(group: Recurrence) -> Sequence[Tensor] | None:
    """What stands for the tensors of ``group`` where its steps hold no position at an end that they never reach; None where they hold none."""
    new: dict[Tensor, Compute] = {}
    for tensor in group.inside:
        assert isinstance(tensor, Compute)
        body = with_narrow_reads(with_tensors(tensor.body, new))
        if body is not tensor.body:
            new[tensor] = tensor.renewed(body)
    if not new:
        return None
    definitions = tuple(new.get(d, d) for d in group.definitions)
    return Recurrence(group.states, definitions, group.places, group.reverse).tensors

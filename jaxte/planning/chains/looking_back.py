"""How a recurrence looks back: which reads of its states are how many positions before, and which of them a choice says the beginning of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.graphs import among
from jaxte.lang.walk import reads_of, substitute
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.recurrences.earlier import element_of, offset_from
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.recurrences.starts import Starts
from jaxte.tensors.tensor import Compute, Tensor


def has_parts_of_its_own(group: Recurrence) -> bool:
    """Whether what lies between the states of ``group`` is read once each, so that no body computes it again."""
    between = {t for t in group.inside if not among(t, group.definitions)}
    reads = [
        r.tensor
        for t in group.inside
        if isinstance(t, Compute)
        for r in reads_of(t.body)
        if r.tensor in between
    ]
    return len(reads) == len({*reads})


def with_parts(definition: Compute, group: Recurrence) -> Expr:
    """The body of ``definition`` with those of the tensors between it and the states, as sums in it are."""
    body = definition.body
    for part in reversed(group.inside):
        if isinstance(part, Compute) and not among(part, group.definitions):
            body = substitute(body, {r: element_of(part, r) for r in reads_of(body) if r.tensor is part})
    return body


@dataclass(frozen=True, eq=False)
class Looking:
    """How a recurrence looks back.

    Attributes:
        group: the recurrence.
        clocks: of each definition the axis that the recurrence runs along.
        bodies: of the definitions, where what is ``guarded`` stands for a state, where a choice says what that begins with.
        guarded: for each of these which state it is.
        starts: what the states begin with.
    """

    group: Recurrence
    clocks: Sequence[Axis]
    bodies: Sequence[Expr]
    guarded: Mapping[Tensor, int]
    starts: Starts

    @classmethod
    def of(cls, group: Recurrence) -> Looking:
        starts = Starts(group)
        marks = {s: State(s.name, s.shape, s.dtype) for s in group.states}
        bodies = []
        for definition in group.definitions:
            body = with_parts(definition, group)
            table = {
                choice: substitute(
                    taken, {r: Read(marks[r.tensor], r.indices) for r in reads_of(taken) if r.tensor in marks}
                )
                for choice, taken in starts.choices(body).items()
            }
            bodies.append(substitute(body, table))
        clocks = [d.axes[place] for d, place in zip(group.definitions, group.places, strict=True)]
        return cls(group, clocks, bodies, {m: n for n, m in enumerate(marks.values())}, starts)

    @cached_property
    def numbers(self) -> dict[Tensor, int]:
        """Which state each tensor that is one, or stands for one, is."""
        return {**self.group.numbers, **self.guarded}

    @cached_property
    def lags(self) -> dict[Read, int]:
        """How many positions before its own each read of a state is.

        Raises:
            LookupError: a read is no fixed number of positions before.
        """
        found: dict[Read, int] = {}
        for body, clock in zip(self.bodies, self.clocks, strict=True):
            for read in reads_of(body):
                if read.tensor in self.numbers:
                    offset = offset_from(clock, read.indices[self.place_of(read)])
                    form = None if offset is None else linear_or_none(offset)
                    if (
                        form is None
                        or not form.is_constant
                        or any(r.tensor in self.numbers for r in reads_of(*read.indices))
                    ):
                        raise LookupError(read)
                    found[read] = int(form.constant if self.group.reverse else -form.constant)
        return found

    def place_of(self, read: Read) -> int:
        return self.group.places[self.numbers[read.tensor]]

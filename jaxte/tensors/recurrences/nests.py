"""Recurrences within a step of another one, which have the clock of that as one more axis: which axis of each of their tensors it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Axis, Const, Read
from jaxte.lang.graphs import among
from jaxte.lang.text import text
from jaxte.lang.walk import reads_of
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none
from jaxte.tensors.bodies.contexts import contexts
from jaxte.tensors.recurrences.earlier import fixed_at
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State, definition_of
from jaxte.tensors.shapes import same_extent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Nest:
    """A recurrence within a step.

    Attributes:
        states: what stands for each state at one position of the clock.
        places: which axis of each is the clock.
        inside: the tensors that depend on the states, definitions among them: one that is made of another state's may read that as it stands.
        between: those that are no definitions.
        clock: that of the step.
    """

    states: dict[State, State]
    places: dict[State, int]
    inside: tuple[Tensor, ...]
    between: tuple[Tensor, ...]
    clock: Axis

    def with_places(self, places: Mapping[Tensor, int]) -> dict[Tensor, int]:
        """``places``, and those of its states."""
        found = dict(places)
        for state, place in self.places.items():
            found[state] = place
        return found

    def read(self, read: Read, name: str) -> Read:
        """``read``, of a state, at the position of the clock that its reader has."""
        state = read.tensor
        assert isinstance(state, State)
        place = self.places[state]
        index = linear_or_none(read.indices[place])
        if index is None or index.coefficient(self.clock) != 1 or len(index.terms) > 1:
            raise DefinitionError(
                f"{name} reads {text(read)}, another position of {self.clock.name} than its own: a recurrence within a step reads those before as "
                "states of the outer one"
            )
        return Read(self.states[state], [i for n, i in enumerate(read.indices) if n != place])


def nest_of(tensor: Recurrent, place: int, clock: Axis, known: Mapping[Tensor, int]) -> Nest:
    """How the recurrence of ``tensor`` stands within a step, where its axis at ``place`` is the ``clock``, and that of others is ``known``.

    Raises:
        DefinitionError: its tensors read each other at other positions of the clock, or nothing says where one of them has it.
    """
    group = tensor.group
    places = {s: known[t] for s, t in zip(group.states, group.tensors, strict=True) if t in known}
    places |= _places(group, group.states[tensor.position], place)
    for state in group.states:
        if state not in places or places[state] == group.place_of(state):
            raise DefinitionError(
                f"{state.name}, a recurrence, depends on one over {clock.name} within that, and has no axis for the positions of {clock.name}: define it in the body "
                f"of that one, or over {clock.name} as well"
            )
    states = {
        s: State(s.name, tuple(e for n, e in enumerate(s.shape) if n != places[s]), s.dtype)
        for s in group.states
    }
    between = tuple(t for t in group.inside if t not in set(group.definitions))
    return Nest(states, places, group.inside, between, clock)


class Clocked:
    """Which axis of a tensor the clock of a recurrence is, followed from its states through what reads them.

    Where the clock has a few positions, all that a tensor reads of states may be at numbers, under conditions on its axes; then it is the axis at which the
    definitions of the states read the tensor at their own positions, or the first one that these conditions fix, or that may be it.

    Args:
        places: of the states.
        definitions: of the states, in this order.
    """

    def __init__(self, places: Mapping[State, int], definitions: Iterable[Compute]) -> None:
        self._states: frozenset[Tensor] = frozenset(places)
        self._extent = next(state.shape[place] for state, place in places.items())
        self._known: dict[Tensor, int] = dict(places.items())
        self._definitions: dict[Tensor, int] = dict(zip(definitions, places.values(), strict=True))
        self._asked: set[Tensor] = set()
        self._whole: dict[Tensor, Tensor] = {}  # what states within steps stand for
        self._apart: set[Tensor] = set()  # tensors that need no state

    def place(self, tensor: Tensor) -> int | None:
        """None where ``tensor`` does not depend on the states, or nothing says so."""
        if isinstance(tensor, Recurrent):
            self._whole.update(zip(tensor.group.states, tensor.group.tensors, strict=True))
        tensor = self._whole.get(tensor, tensor)
        if tensor not in self._known and tensor not in self._asked and not self._is_apart(tensor):
            self._asked.add(tensor)
            found = self._followed(tensor)
            if found is None and any(t in self._states for t in topological_order([tensor])):
                found = self._by_readers.get(tensor)
                found = self._by_conditions(tensor) if found is None else found
                found = self._outermost(tensor) if found is None else found
            self._asked.discard(tensor)
            if found is not None:
                self._known[tensor] = found
        return self._known.get(tensor)

    def _is_apart(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` needs no state of any recurrence: in a long row of such tensors each would be followed once for every way to it."""
        if tensor not in self._apart:
            order = topological_order([tensor], lambda t: () if t in self._apart else t.inputs)
            if any(isinstance(t, State) for t in order):
                return False
            self._apart.update(order)
        return True

    def _followed(self, tensor: Tensor) -> int | None:
        own = definition_of(tensor)
        if own is None:
            return None
        for read in reads_of(own.body):
            place = self.place(read.tensor)
            if place is None:
                continue
            for n, axis in enumerate(own.axes):
                form = linear_or_none(read.indices[place])
                if form is not None and form.coefficient(axis) == 1:
                    return n
        return None

    def _by_conditions(self, tensor: Tensor) -> int | None:
        """The first axis that is as long as the clock and a number wherever ``tensor`` reads a position of the clock that is a number.

        Of several, each would do: what is read at a number is found by the conditions, whichever axis is taken for the clock.
        """
        own = definition_of(tensor)
        if own is None:
            return None
        places = {r: self.place(r.tensor) for r in reads_of(own.body)}
        reads = {
            r for r, place in places.items() if place is not None and isinstance(r.indices[place], Const)
        }
        left = set(range(len(own.axes)))
        if isinstance(tensor, Recurrent):
            left.discard(tensor.group.places[tensor.position])
        for read, axes, conditions in contexts(own.axes, own.body, reads) if reads else ():
            place = places[read]
            points = IntegerSet(axes, conditions)
            if place is not None and not points.is_empty():
                extent = read.tensor.shape[place]
                left = {
                    n
                    for n in left
                    if same_extent(own.axes[n].extent, extent) and fixed_at(points, own.axes[n]) is not None
                }
        return min(left) if reads and left else None

    def _outermost(self, tensor: Tensor) -> int | None:
        """The first axis of ``tensor``, of a recurrence within the step, that is as long as the clock and not the one that it runs along itself."""
        if not isinstance(tensor, Recurrent):
            return None
        own = tensor.group.places[tensor.position]
        left = (n for n, e in enumerate(tensor.shape) if n != own and same_extent(e, self._extent))
        return next(left, None)

    @cached_property
    def _by_readers(self) -> dict[Tensor, int]:
        """The axis at which a tensor is read at the position of its reader, from the definitions of the states on."""
        found: dict[Tensor, int] = {**self._definitions}
        whole: dict[Tensor, Tensor] = {}
        waiting: list[Tensor] = [*found]
        while waiting:
            reader = waiting.pop()
            own = definition_of(reader)
            clock = None if own is None else own.axes[found[reader]]
            for read in reads_of(own.body) if own is not None else ():
                if isinstance(read.tensor, Recurrent):
                    whole.update(zip(read.tensor.group.states, read.tensor.group.tensors, strict=True))
                tensor = whole.get(read.tensor, read.tensor)
                places = [n for n, index in enumerate(read.indices) if index is clock]
                if len(places) == 1 and tensor not in found:
                    found[tensor] = places[0]
                    waiting.append(tensor)
        return found


def _places(group: Recurrence, first: State, place: int) -> dict[State, int]:
    """Which axis of each state is the clock, where it is axis ``place`` of ``first``: those that one definition reads at its own position.

    Where all that reads a state reads it at numbers, it is the axis at which its definition reads the others at its own position.
    """
    found: dict[Tensor, int] = {first: place}
    states: dict[Tensor, State] = dict(zip(group.definitions, group.states, strict=True))
    inside = {states.get(t, t): t for t in reversed(group.inside) if isinstance(t, Compute)}
    reads = {
        known: [
            (states.get(r.tensor, r.tensor), r.indices)
            for r in reads_of(own.body)
            if r.tensor in group.numbers or among(r.tensor, group.inside)
        ]
        for known, own in inside.items()
    }
    count = 0
    while len(found) > count:
        count = len(found)
        for known, own in inside.items():
            at_clock = (
                (tensor, n)
                for tensor, indices in (reads[known] if known in found else ())
                for n, index in enumerate(indices)
                if index is own.axes[found[known]]
            )
            for tensor, n in at_clock:
                found.setdefault(tensor, n)
        for known, own in inside.items() if len(found) == count else ():
            read = [indices[found[tensor]] for tensor, indices in reads[known] if tensor in found]
            for n in (n for index in read for n, axis in enumerate(own.axes) if index is axis):
                found.setdefault(known, n)
    return {state: found[state] for state in group.states if state in found}

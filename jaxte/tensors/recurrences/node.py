"""Tensors that read themselves and each other at earlier positions: ``h[t, i] = tanh(x[t, i] + sum over j of W[i, j] * h[t - 1, j])``.

The definitions of one recurrence are ordinary ones over all axes, which read a *state* where they mean themselves: an input that has no array.
So the graph has no circle, and whatever is done to definitions (substitution, adjoints, tangents, one axis more) is done to these as to any other.
What a graph sees of a recurrence is a :class:`Recurrent` for each of its tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxte.lang.errors import DefinitionError
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.shapes import Extent, Shape
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


class State(Placeholder):
    """What stands for a tensor in its own definition, and in those that it is computed together with."""

    __slots__ = ()


class Position(Placeholder):
    """The position of a loop, as a number that each of its steps is given."""

    __slots__ = ()


class Recurrent(Tensor):
    """One tensor of a recurrence.

    Attributes:
        group: the recurrence, which all its tensors share.
        position: which of them this one is.
    """

    __slots__ = ("group", "position")

    def __init__(self, name: str, shape: Shape, dtype: str, group: Recurrence, position: int) -> None:
        super().__init__(name, shape, dtype)
        self.group = group
        self.position = position

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.group.inputs


class Final(Recurrent):
    """What one tensor of a recurrence is at the position that is computed last: what the loop ends with, where no other position is read."""

    __slots__ = ()


class Kept(Recurrent):
    """What one tensor of a recurrence is right before some of its positions, from which the others are computed again.

    Attributes:
        slots: how many of them there are at a time; one more place of the array holds what is not kept.
    """

    __slots__ = ("slots",)

    def __init__(self, group: Recurrence, position: int, slots: int) -> None:
        state, place = group.states[position], group.places[position]
        shape = (slots + 1, *state.shape[:place], *state.shape[place + 1 :])
        super().__init__(f"{state.name}_kept", shape, state.dtype, group, position)
        self.slots = slots


@dataclass(frozen=True, eq=False)
class Recurrence:
    """Tensors that are computed together, one position of an axis after the other.

    Attributes:
        states: what their definitions read in place of them.
        definitions: one for each state, over all of its axes.
        places: where the axis stands among those of each.
        reverse: whether the last position comes first.
    """

    states: tuple[State, ...]
    definitions: tuple[Compute, ...]
    places: tuple[int, ...]
    reverse: bool

    @cached_property
    def tensors(self) -> tuple[Recurrent, ...]:
        """What the rest of the graph reads."""
        return tuple(Recurrent(s.name, s.shape, s.dtype, self, n) for n, s in enumerate(self.states))

    @cached_property
    def numbers(self) -> dict[Tensor, int]:
        """Which of the states each is."""
        return {state: n for n, state in enumerate(self.states)}

    @cached_property
    def finals(self) -> tuple[Final, ...]:
        """The last values of the tensors."""
        found = []
        for number, (state, place) in enumerate(zip(self.states, self.places, strict=True)):
            rest = (*state.shape[:place], *state.shape[place + 1 :])
            found.append(Final(f"{state.name}_last", rest, state.dtype, self, number))
        return tuple(found)

    def place_of(self, state: State) -> int:
        """Where the axis stands among those of ``state``."""
        return self.places[self.numbers[state]]

    @cached_property
    def inside(self) -> tuple[Compute | Recurrent, ...]:
        """The tensors that depend on a state, each after what it reads; the definitions are among them, and tensors of recurrences within a step."""
        moving: set[Tensor] = set(self.states)
        found: list[Compute | Recurrent] = []
        for tensor in topological_order(self.definitions):
            if not any(t in moving for t in tensor.inputs):
                continue
            if not isinstance(tensor, (Compute, Recurrent)):
                states = ", ".join(s.name for s in self.states)
                raise DefinitionError(
                    f"{tensor.name}, a function of arrays (te.extern), depends on {states} within the recurrence of {states}; a step is made of "
                    "definitions only: write it as a definition"
                )
            moving.add(tensor)
            found.append(tensor)
        return tuple(dict.fromkeys([*found, *self.definitions]))

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """What has to exist before."""
        own: set[Tensor] = {*self.states, *self.inside}
        return tuple(dict.fromkeys(t for tensor in self.inside for t in tensor.inputs if t not in own))

    @property
    def extent(self) -> Extent:
        """The number of positions."""
        return self.states[0].shape[self.places[0]]


@dataclass(frozen=True, eq=False)
class Replay(Recurrence):
    """A recurrence from the other end that computes the positions of ``source`` again, as it comes to them, and reads them nowhere else.

    Attributes:
        source: the other recurrence.
        kept: what its tensors are before the positions that are kept.
    """

    source: Recurrence
    kept: tuple[Kept, ...]

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        own: set[Tensor] = {*self.states, *self.inside, *self.source.tensors}
        read = (t for tensor in self.inside for t in tensor.inputs if t not in own)
        return tuple(dict.fromkeys([*read, *self.kept, *self.source.finals, *self.source.inputs]))


def with_siblings(order: Sequence[Tensor]) -> list[Tensor]:
    """``order`` with all tensors of each recurrence in it, which are computed together."""
    every = (
        t for tensor in order for t in (tensor.group.tensors if isinstance(tensor, Recurrent) else (tensor,))
    )
    return list(dict.fromkeys(every))


def recurrences_in(order: Iterable[Tensor]) -> list[Recurrence]:
    """The recurrences that tensors of ``order`` are of, each once."""
    return list(dict.fromkeys(t.group for t in order if isinstance(t, Recurrent)))


def definition_of(tensor: Tensor) -> Compute | None:
    """What says what the elements of ``tensor`` are; None for inputs, and for results of functions of arrays."""
    if isinstance(tensor, Recurrent):
        return tensor.group.definitions[tensor.position]
    return tensor if isinstance(tensor, Compute) else None


def definitions_in(order: Iterable[Tensor]) -> list[Compute]:
    """The definitions that the tensors of ``order`` are computed by, each once, also those between states."""
    found: dict[Compute, None] = {}
    for tensor in order:
        if isinstance(tensor, Recurrent):
            found.update(dict.fromkeys(definitions_in(tensor.group.inside)))
        elif isinstance(tensor, Compute):
            found[tensor] = None
    return list(found)

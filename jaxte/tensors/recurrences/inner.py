"""Recurrences that the body of another tensor runs, ``te.recurrence`` within it: over the axes of that body, too, which stand in front of their own.

What a step has computed by a recurrence within it and the next one reads, as states: it is handed on, and the inner loop is not run for it once more.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.lang.expr import Axis, Const, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, rewrite_reads, substitute
from jaxte.sets.affine import normal
from jaxte.tensors.bodies.functions import evaluated
from jaxte.tensors.compute import defined
from jaxte.tensors.elementwise import copy_of
from jaxte.tensors.recurrences.earlier import offset_from
from jaxte.tensors.recurrences.nests import Clocked
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.shapes import Shape, as_extent
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, eq=False)
class Inner:
    """A tensor within a body: its elements at the present point of the axes of that body.

    Attributes:
        tensor: over these axes, and its own.
        around: the axes of the body.
    """

    tensor: Tensor
    around: tuple[Axis, ...]

    def __getitem__(self, indices: Any) -> Expr:
        own = indices if isinstance(indices, tuple) else (indices,)
        found: Expr = self.tensor[(*self.around, *own)]
        return found

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    @property
    def shape(self) -> Shape:
        """Without the axes of the body."""
        return self.tensor.shape[len(self.around) :]

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Around:
    """The axes of a body, and those of the tensors within it that stand for them."""

    axes: tuple[Axis, ...]
    own: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(as_extent(a.extent) for a in self.axes)

    def state(self, state: State) -> State:
        """``state`` with these axes in front."""
        return State(state.name, (*self.shape, *state.shape), state.dtype)

    def over(self, body: Expr, states: dict[State, State], own: Sequence[Axis]) -> Expr:
        """``body`` with reads of the ``states`` at these axes, over ``own`` in place of them."""
        table: dict[Expr, Expr] = dict(zip(self.axes, own, strict=True))

        def rule(read: Read, over: Read) -> Expr:
            is_own = isinstance(read.tensor, State) and read.tensor in states
            return Read(states[read.tensor], (*self.axes, *over.indices)) if is_own else over  # type: ignore[index]

        return substitute(rewrite_reads(body, rule), table)

    def init(self, init: Any) -> Any:
        """What stands before the first position, as a function of these axes and of the others."""
        if init is None or isinstance(init, (int, float, complex, bool)):
            return init
        count = len(self.axes)

        def value(*at: Expr) -> Expr:
            if isinstance(init, (Tensor, Inner)):
                found = as_expr(init[tuple(at[count:])])
            else:
                found = as_expr(evaluated(init, *at[count:]) if callable(init) else init)
            return substitute(found, dict(zip(self.axes, at[:count], strict=True)))

        return value


def around_of(exprs: Sequence[Expr], axes: Sequence[Sequence[Axis]]) -> Around | None:
    """The axes in ``exprs`` that are none of ``axes``; None where there are none."""
    own = {a for row in axes for a in row}
    found = dict.fromkeys(a for e in exprs for a in free_axes(e) if a not in own and not a.reduction)
    return Around(tuple(found), tuple(Axis(a.name, 0, a.extent) for a in found)) if found else None


def copied_by(tensor: Compute) -> Recurrent | None:
    """The tensor of a recurrence within a step that ``tensor`` is, element by element."""
    body = tensor.body
    if (
        isinstance(body, Read)
        and isinstance(body.tensor, Recurrent)
        and len(body.indices) == len(tensor.axes)
    ):
        return body.tensor if all(map(operator.is_, body.indices, tensor.axes)) else None
    return None


def with_whole(group: Recurrence) -> Recurrence:
    """``group`` with states that are the tensors of recurrences within its steps, which derivatives read: a loop stacks them where something does."""
    inner = dict.fromkeys(t for own in group.inside if isinstance(own, Recurrent) for t in own.group.tensors)
    there = {copied_by(d) for d in group.definitions}
    clocked = Clocked(dict(zip(group.states, group.places, strict=True)), group.definitions)
    rows = [(t, clocked.place(t)) for t in inner if t not in there]
    more = [
        (State(t.name, t.shape, t.dtype), copy_of(t, t.name), place) for t, place in rows if place is not None
    ]
    if not more:
        return group
    states, definitions, places = zip(*more, strict=True)
    return Recurrence(
        (*group.states, *states), (*group.definitions, *definitions), (*group.places, *places), group.reverse
    )


def handed_on(group: Recurrence) -> Recurrence:
    """``group`` with more states: of the tensors that recurrences within a step are, or that are made of them, those of which another step reads."""
    within: set[Tensor] = set()
    for tensor in group.inside:
        is_made = isinstance(tensor, Recurrent) or any(t in within for t in tensor.inputs)
        if is_made and not among(tensor, group.definitions):
            within.add(tensor)
    if not within:
        return group
    making = _Making(group, within)
    definitions = [making.renewed(d, place) for d, place in zip(group.definitions, group.places, strict=True)]
    if not making.states:
        return group
    return Recurrence(
        (*group.states, *making.states.values()),
        (*definitions, *(making.made[state][0] for state in making.states.values())),
        (*group.places, *(making.made[state][1] for state in making.states.values())),
        group.reverse,
    )


class _Making:
    """States under way.

    Attributes:
        states: by what they are: a tensor, and where along its axes, of those that are read at one number only.
        made: the definition of each, with the place of the clock.
    """

    def __init__(self, group: Recurrence, within: set[Tensor]) -> None:
        self.group = group
        self.within = within
        self.states: dict[tuple[object, ...], State] = {}
        self.made: dict[State, tuple[Compute, int]] = {}
        self._clocked = Clocked(dict(zip(group.states, group.places, strict=True)), group.definitions)
        self._renewed: dict[tuple[Compute, int], Compute] = {}

    def renewed(self, tensor: Compute, place: int) -> Compute:
        """``tensor``, whose clock is the axis at ``place``, with reads of other steps as reads of states."""
        key = tensor, place
        if key not in self._renewed:
            clock = tensor.axes[place]
            body = rewrite_reads(
                tensor.body, lambda r, over: self._read(over, clock) if r.tensor in self.within else over
            )
            self._renewed[key] = tensor if body is tensor.body else tensor.renewed(body)
        return self._renewed[key]

    def _read(self, read: Read, clock: Axis) -> Expr:
        offsets = {n: offset_from(clock, i) for n, i in enumerate(read.indices)}
        found = [(n, o) for n, o in offsets.items() if isinstance(o, Const)]
        tensor = read.tensor
        if len(found) != 1:  # at a number, where the position is that number plus or minus one
            own = self._clocked.place(tensor)
            return read if own is None else self._state_read(tensor, own, read)
        ((place, offset),) = found
        if offset.value:
            return self._state_read(tensor, place, read)
        return Read(self.renewed(tensor, place), read.indices) if isinstance(tensor, Compute) else read

    def _state_read(self, tensor: Tensor, place: int, read: Read) -> Read:
        numbers = {n: i for n, i in enumerate(read.indices) if isinstance(i, Const) and n != place}
        fixed = numbers if isinstance(tensor, Recurrent) else {}
        key = (tensor, place, *fixed.items())
        rest = [n for n in range(tensor.ndim) if n not in fixed]
        if key not in self.states:
            shape = tuple(tensor.shape[n] for n in rest)
            state = self.states[key] = State(tensor.name, shape, tensor.dtype)
            if isinstance(tensor, Compute):
                self.made[state] = self.renewed(tensor, place), place
            else:
                axes = {n: Axis("t" if n == place else f"i{n}", 0, tensor.shape[n]) for n in rest}
                at = [fixed[n] if n in fixed else axes[n] for n in range(tensor.ndim)]
                (own,) = defined([tensor.name], tuple(axes.values()), [Read(tensor, at)])
                self.made[state] = own, rest.index(place)
        return Read(self.states[key], [normal(read.indices[n]) for n in rest])

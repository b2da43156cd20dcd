"""One position of a recurrence: the same definitions without the axis that it runs along.

A read of a state at an earlier position is one of what the steps before left, a read of it at the same position one of what this step has made, and
a read of any other tensor at the position one of a slice of it. A tensor on the way, which the definitions read at ``t + 1``, is taken
at that position: only states are carried from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any

from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Axis, Expr, Read, as_expr, cast
from jaxte.lang.graphs import among, identical
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, reads_of, reductions, rewrite, substitute
from jaxte.sets.affine import normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known
from jaxte.sets.resolved import decided
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.earlier import at_clock, offset_from, with_bodies, with_lags
from jaxte.tensors.recurrences.nests import Clocked, Nest, nest_of
from jaxte.tensors.recurrences.node import Position, Recurrence, Recurrent, State
from jaxte.tensors.recurrences.starts import Starts
from jaxte.tensors.recurrences.step import Carried, Slice, Step, lag_of, window_of
from jaxte.tensors.tensor import Compute, Tensor


def step_of(group: Recurrence) -> Step:
    """One step of ``group``.

    Raises:
        DefinitionError: a definition reads what is not known at its position: itself, a later one, or one that is not a fixed number of steps
            before. The message names the read.
    """
    return _making_of(group).step


def step_with(group: Recurrence, longer: Recurrence) -> Step:
    """One step of ``longer``, which is ``group`` with more states behind its own: what they share is made once for all that are asked.

    Raises:
        DefinitionError: as :func:`step_of`.
    """
    making = _making_of(group).longer(longer)
    for own, place in list(zip(longer.definitions, longer.places, strict=True))[len(group.states) :]:
        making.results.append(making.at(own, place, 0))
    return making.step


@lru_cache(maxsize=16)
def _making_of(group: Recurrence) -> _Making:
    name = group.definitions[0].axes[group.places[0]].name
    making = _Making(group, Axis(name, 0, group.extent), Position(name, (), "int32"), Starts(group))
    for own, place in zip(group.definitions, group.places, strict=True):
        making.results.append(making.at(own, place, 0))
    return making


@dataclass
class _Making:
    """A step under way."""

    group: Recurrence
    clock: Axis
    now: Placeholder
    starts: Starts
    results: list[Compute] = field(default_factory=list)
    order: list[Compute | Recurrent] = field(default_factory=list)
    carried: dict[Carried, Placeholder] = field(default_factory=dict)
    slices: dict[Placeholder, Slice] = field(default_factory=dict)
    history: dict[State, Placeholder] = field(default_factory=dict)
    _made: dict[tuple[Tensor, int, Expr], Compute] = field(default_factory=dict)
    _sliced: dict[tuple[object, ...], Placeholder] = field(default_factory=dict)
    _under_way: list[tuple[tuple[Tensor, int, Expr], str]] = field(default_factory=list)
    _within: dict[tuple[Recurrence, Expr], Recurrence] = field(default_factory=dict)

    def longer(self, group: Recurrence) -> _Making:
        """The same for ``group``, which has more states."""
        given = ("group", "clock", "now", "starts")
        copies: dict[str, Any] = {
            f.name: copy(getattr(self, f.name)) for f in fields(self) if f.name not in given
        }
        return replace(self, group=group, starts=self.starts.longer(group), **copies)

    @property
    def step(self) -> Step:
        """What was made, for its user to change."""
        return Step(
            self.clock,
            self.now,
            [*self.order],
            [*self.results],
            {**self.carried},
            {**self.slices},
            {**self.starts.tensors},
            {**self.history},
        )

    def at(
        self, tensor: Compute, place: int, offset: Expr | int, shown: str = "", nest: Nest | None = None
    ) -> Compute:
        """``tensor`` at the clock plus ``offset`` along the axis at ``place``; part of a recurrence within the step if that is a ``nest``."""
        key = tensor, place, as_expr(offset)
        if key in self._made:
            return self._made[key]
        self._enter(key, shown)
        axes = [a for n, a in enumerate(tensor.axes) if n != place]
        body = decided(substitute(tensor.body, {tensor.axes[place]: normal(self.clock + offset)}))
        self._check_bounds(tensor, body)
        value = _Reading(self, tensor, nest).value(body)
        if value.weak or value.dtype != tensor.dtype:
            value = cast(value, tensor.dtype)
        self._under_way.pop()
        made = self._made[key] = Compute(tensor.name, axes, value)
        if nest is None:
            self.order.append(made)
        return made

    def within(self, tensor: Recurrent, place: int, offset: Expr, shown: str) -> Recurrent:
        """``tensor``, of a recurrence within a step, at the clock plus ``offset``: one of a recurrence without that axis."""
        inner = tensor.group
        key = inner, offset
        if key not in self._within:
            self._enter((inner.tensors[0], place, offset), shown)
            nest = nest_of(tensor, place, self.clock, self.inner_places)
            rows = zip(inner.definitions, nest.states, strict=True)
            definitions = tuple(self.at(d, nest.places[s], offset, nest=nest) for d, s in rows)
            places = tuple(p - (nest.places[s] < p) for p, s in zip(inner.places, nest.states, strict=True))
            self._within[key] = Recurrence(tuple(nest.states.values()), definitions, places, inner.reverse)
            self._under_way.pop()
        found = self._within[key].tensors[tensor.position]
        if not among(found, self.order):
            self.order.append(found)
        return found

    def _enter(self, key: tuple[Tensor, int, Expr], shown: str) -> None:
        if any(identical(own, key) for own, _ in self._under_way):
            self._refuse_circle(key, shown)
        self._under_way.append((key, shown))

    def moves(self, index: Expr) -> bool:
        return among(self.clock, free_axes(index))

    @cached_property
    def between(self) -> tuple[Tensor, ...]:
        """The tensors between states."""
        definitions = set(self.group.definitions)
        return tuple(t for t in self.group.inside if t not in definitions)

    @cached_property
    def inner_places(self) -> dict[Tensor, int]:
        """Which axis of the tensors of recurrences within a step the clock is."""
        inner = [t for t in self.group.inside if isinstance(t, Recurrent)]
        group = self.group
        places = dict(zip(group.states, group.places, strict=True))
        clocked = Clocked(places, group.definitions) if inner else None
        found = {} if clocked is None else {t: clocked.place(t) for t in inner}
        return {t: place for t, place in found.items() if place is not None}

    def place_of(self, tensor: Tensor, moving: Sequence[int]) -> int | None:
        """Which axis of ``tensor``, which depends on states, the clock is, where the clock is in the indices ``moving`` of a read."""
        if len(moving) == 1:
            return moving[0]
        return self.inner_places.get(tensor)

    def slice_of(
        self, tensor: Tensor, positions: dict[int, Expr], lengths: dict[int, int] | None = None
    ) -> Placeholder:
        long = lengths or {}
        key = (tensor, *positions.items(), *long.items())
        if key not in self._sliced:
            shape = tuple(
                long.get(n, e) for n, e in enumerate(tensor.shape) if n not in positions or n in long
            )
            made = self._sliced[key] = Placeholder(tensor.name, shape, tensor.dtype)
            self.slices[made] = Slice(tensor, positions, long)
        return self._sliced[key]

    def carry(self, state: State, lag: int) -> Placeholder:
        key = state, lag
        if key not in self.carried:
            place = self.group.place_of(state)
            shape = (*state.shape[:place], *state.shape[place + 1 :])
            before = "before" if lag == 1 else f"before_{lag}"
            self.carried[key] = Placeholder(f"{state.name}_{before}", shape, state.dtype)
        return self.carried[key]

    def so_far(self, state: State) -> Placeholder:
        """All positions of ``state`` that are known, and zeros at the others."""
        if state not in self.history:
            self.history[state] = Placeholder(f"{state.name}_so_far", state.shape, state.dtype)
        return self.history[state]

    def _check_bounds(self, tensor: Compute, body: Expr) -> None:
        for node in reductions(body):
            if any(self.moves(e) for a in node.axes for e in (a.lo, a.hi)):
                raise DefinitionError(
                    f"{tensor.name}: the range of a sum depends on the position {self.clock.name} of a recurrence; give it a fixed range "
                    "and the condition as where="
                )

    def _refuse_circle(self, key: tuple[Tensor, int, Expr], shown: str) -> None:
        start = next(n for n, (own, _) in enumerate(self._under_way) if identical(own, key))
        names = [own[0].name for own, _ in self._under_way[start:] if among(own[0], self.group.definitions)]
        reads = [r for _, r in self._under_way[start + 1 :] if r] + [shown]
        chain = " -> ".join([*names, names[0]]) if names else key[0].name
        raise DefinitionError(
            f"a circle at one position: {chain} (by {', '.join(r for r in reads if r)}); one of these reads has to be of an earlier position, "
            f"as [{self.clock.name} {'+' if self.group.reverse else '-'} 1]"
        )


@dataclass
class _Reading:
    """The body of one tensor of a step under way."""

    making: _Making
    tensor: Compute
    nest: Nest | None = None

    def value(self, body: Expr) -> Expr:
        making = self.making
        within = making.inner_places if self.nest is None else self.nest.with_places(making.inner_places)
        between = making.between if self.nest is None else (*making.between, *self.nest.between)
        body = at_clock(with_bodies(body, between, making.clock), within, making.clock)
        body = with_lags(body, making.group, making.clock, making.so_far)
        body = substitute(body, making.starts.choices(body))
        for read in reads_of(body):  # as they were written: rows of what their indices read are not taken yet
            if read.tensor in making.group.numbers:
                lag_of(read, self.tensor.name, making.group, making.clock)
        value = rewrite(body, self._node)
        return substitute(value, {making.clock: Read(making.now, ())})

    def _node(self, node: Expr) -> Expr:
        if not isinstance(node, Read):
            return node
        making, group = self.making, self.making.group
        node = Read(node.tensor, [normal(i) if making.moves(i) and is_index(i) else i for i in node.indices])
        tensor = node.tensor
        if tensor in group.numbers:
            lag = lag_of(node, self.tensor.name, group, making.clock)
            place = group.place_of(tensor)
            rest = [i for n, i in enumerate(node.indices) if n != place]
            if lag:
                return Read(making.carry(tensor, lag), rest)
            own = group.definitions[group.numbers[tensor]]
            return Read(making.at(own, place, 0, text(node)), rest)
        moving = [n for n, index in enumerate(node.indices) if making.moves(index)]
        if self.nest is not None and isinstance(tensor, State) and tensor in self.nest.states:
            return self.nest.read(node, self.tensor.name)
        if among(tensor, group.inside) or (self.nest is not None and among(tensor, self.nest.inside)):
            return self._of_inside(node, moving)
        still = {n: node.indices[n] for n in moving if self._is_of_clock(node.indices[n])}
        sizes = [known(as_expr(e)) for e in tensor.shape]
        windows = {
            n: window_of(node.indices[n], tensor.shape[n], making.clock)
            for n in moving
            if n not in still and None not in sizes
        }
        found = {n: own for n, own in windows.items() if own is not None}
        if not still and not found:
            return node
        rest = [found[n].rest if n in found else i for n, i in enumerate(node.indices) if n not in still]
        positions = {**still, **{n: own.start for n, own in found.items()}}
        return Read(making.slice_of(tensor, positions, {n: own.length for n, own in found.items()}), rest)

    def _of_inside(self, node: Read, moving: Sequence[int]) -> Expr:
        """A read of a tensor that depends on states itself."""
        place = self.making.place_of(node.tensor, moving)
        offset = None if place is None else offset_from(self.making.clock, node.indices[place])
        if offset is None or place is None:
            raise DefinitionError(
                f"{self.tensor.name} reads {text(node)}: a step of a recurrence has {node.tensor.name} at one position along {self.making.clock.name}; "
                "make it a state of the recurrence"
            )
        rest = [i for n, i in enumerate(node.indices) if n != place]
        if isinstance(node.tensor, Recurrent):
            return Read(self.making.within(node.tensor, place, offset, text(node)), rest)
        nest = self.nest if self.nest is not None and among(node.tensor, self.nest.inside) else None
        return Read(self.making.at(node.tensor, place, offset, text(node), nest), rest)

    def _is_of_clock(self, index: Expr) -> bool:
        """Whether ``index`` is the same at all points of one position."""
        return set(free_axes(index)) == {self.making.clock} and not reads_of(index)

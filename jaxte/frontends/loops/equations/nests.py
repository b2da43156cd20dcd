"""Equations of loops in loops as a recurrence, in whose steps others run: the pressure of each time step, found by sweeps that read each other.

What a later step of the outer loop reads of a sweep is a state of the outer recurrence: the elements at one time of the sweep, mostly its last, or all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxte.frontends.loops.equations.edges import Clocks, Nest
from jaxte.frontends.loops.equations.given import Made
from jaxte.frontends.loops.equations.rotated import Row, rotated
from jaxte.frontends.loops.equations.states import Timed
from jaxte.frontends.loops.program import Equation, Stand
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, conjunction
from jaxte.lang.walk import reads_of, rewrite_reads, substitute
from jaxte.sets.affine import normal
from jaxte.tensors.compute import defined
from jaxte.tensors.recurrences.inner import copied_by, with_whole
from jaxte.tensors.recurrences.node import Recurrence, Recurrent, State
from jaxte.tensors.recurrences.steps import step_of
from jaxte.tensors.shapes import as_extent
from jaxte.tensors.tensor import Compute, Tensor

_ALL: Expr = TRUE  # in place of a time: all times

Length = Callable[[Sequence[Equation], Clocks], Expr]
"""The number of steps that equations take by their clocks."""


@dataclass(frozen=True, eq=False)
class _Within:
    """An equation in a recurrence within a step.

    Attributes:
        timed: over the clock of that recurrence.
        outer: its axis that the clock of the outer one counts.
        state: over the outer clock, that of the recurrence, and the other axes.
        axes: of its definition, in this order.
        lags: of its reads of others in the same recurrence.
    """

    timed: Timed
    outer: Axis
    state: State
    axes: tuple[Axis, ...]
    lags: Clocks

    @property
    def domain(self) -> Expr:
        """Where it has elements: not in steps of the outer clock that others alone need."""
        clock = self.axes[0]
        own = TRUE if self.outer.extent is clock.extent else clock < self.outer.extent
        return conjunction([own, self.timed.domain])

    def place(self, outer: Expr, indices: Sequence[Expr]) -> list[Expr]:
        """Where the element at ``indices`` of the equation stands, at the time ``outer``."""
        time, *rest = self.timed.place(indices)
        places = [n for n, a in enumerate(self.timed.rest) if a is not self.outer]
        return [normal(outer), time, *(rest[n] for n in places)]

    def time(self, indices: Sequence[Expr]) -> Expr:
        """When the element at ``indices`` is computed, if that is one number; else all times."""
        time = self.timed.place(indices)[0]
        return time if isinstance(time, Const) and self.timed.time is self.timed.solved else _ALL


@dataclass(frozen=True, eq=False)
class _Seen(Made):
    """An equation of a recurrence within a step: its elements at one time are states, and all of it is one."""

    within: _Within
    states: Mapping[Expr, Tensor]
    whole: Tensor

    def at(self, indices: Sequence[Expr]) -> Expr:
        table = dict(zip(self.axes, indices, strict=True))
        time = self.within.time(indices)
        for key in (time, _ALL):
            if key in self.states:
                rest = [
                    i
                    for a, i in table.items()
                    if a is not self.within.outer and (key is _ALL or a is not self.within.timed.solved)
                ]
                return Read(self.states[key], [table[self.within.outer], *rest])
        return Read(self.whole, self.within.place(table[self.within.outer], indices))


@dataclass(eq=False)
class Nesting:
    """Equations of one block on their way to a recurrence.

    Args:
        block: the equations, with bodies over each other by their stands.
        nest: their clocks.
        length: of a loop by its clocks.
        readers: equations outside of the block.
    """

    block: Sequence[Equation]
    nest: Nest
    length: Length
    readers: Sequence[Equation]
    _timed: dict[Equation, Timed] = field(default_factory=dict)
    _within: dict[Equation, _Within] = field(default_factory=dict)
    _tensors: dict[Equation, Recurrent] = field(default_factory=dict)
    _shown: dict[tuple[Equation, Expr], State] = field(default_factory=dict)

    def made(self) -> dict[Equation, Made]:
        """What stands for each equation."""
        outer = self.length(self.block, self.nest.outer)
        inner = {e for block, _ in self.nest.blocks for e in block}
        self._timed.update({e: Timed(e, self.nest.outer, outer) for e in self.block if e not in inner})
        for block, clocks in self.nest.blocks:
            for equation in block:
                self._within[equation] = self._placed(equation, clocks, outer, self.length(block, clocks))
        for equation, time in self._times_read():
            self._shown[equation, time] = self._state_of(equation, time, outer)
        for block, _ in self.nest.blocks:
            self._run_within(block)
        rows = [
            Row(t.state, t.axes, substitute(self._body(e), t.table), t.domain) for e, t in self._timed.items()
        ]
        for (equation, time), state in self._shown.items():
            shown = self._shown_as(equation, time, state)
            rows.append(Row(state, shown.axes, shown.body))
        rows = rotated(rows)
        states, definitions = [row.state for row in rows], [row.definition() for row in rows]
        group = with_whole(Recurrence(tuple(states), tuple(definitions), (0,) * len(states), False))
        step_of(group)
        return self._seen(group)

    def _placed(self, equation: Equation, clocks: Clocks, outer: Expr, length: Expr) -> _Within:
        counted = self.nest.outer.times[equation]
        assert isinstance(counted, Axis)
        clock = Axis(counted.name, 0, outer)
        timed = Timed(equation, clocks, length, {counted: clock})
        axes = (clock, timed.clock, *(a for a in timed.axes[1:] if a is not clock))
        state = State(equation.name, tuple(as_extent(a.extent) for a in axes), equation.dtype)
        return _Within(timed, counted, state, axes, clocks)

    # --- what the outer recurrence hands on of those within its steps

    def _times_read(self) -> dict[tuple[Equation, Expr], None]:
        """Of equations within steps, the times at which later steps and other equations read them."""
        found: dict[tuple[Equation, Expr], None] = {}
        for reader in (*self.block, *self.readers):
            for read in reads_of(reader.body):
                target = read.tensor.equation if isinstance(read.tensor, Stand) else None
                if target in self._within and not (reader in self.block and self._is_now(reader, read)):
                    time = self._within[target].time(read.indices)
                    if time is not _ALL or reader in self.block:
                        found[target, time] = None
        return {key: None for key in found if key[1] is _ALL or (key[0], _ALL) not in found}

    def _is_now(self, reader: Equation, read: Read) -> bool:
        return not self.nest.outer.lag(reader, read).least

    def _state_of(self, equation: Equation, time: Expr, outer: Expr) -> State:
        extents = [a.extent for a in self._axes_shown(equation, time)]
        return State(equation.name, tuple(as_extent(e) for e in (outer, *extents)), equation.dtype)

    def _axes_shown(self, equation: Equation, time: Expr) -> list[Axis]:
        """The axes of an equation that a state of it has, behind the clock."""
        own = self._within[equation]
        return [
            a for a in equation.axes if a is not own.outer and (time is _ALL or a is not own.timed.solved)
        ]

    def _shown_as(self, equation: Equation, time: Expr, state: State) -> Compute:
        """The definition of a state: the elements of a recurrence within the step."""
        own = self._within[equation]
        clock = Axis(own.axes[0].name, 0, own.axes[0].extent)
        shown = self._axes_shown(equation, time)
        axes = [Axis(a.name, 0, a.extent) for a in shown]
        table: dict[Expr, Expr] = {own.outer: clock, **dict(zip(shown, axes, strict=True))}
        if time is not _ALL:
            table[own.timed.solved] = time
        value = Read(self._tensors[equation], own.place(clock, [table[a] for a in equation.axes]))
        return defined([state.name], (clock, *axes), [value])[0]

    # --- bodies

    def _run_within(self, block: Sequence[Equation]) -> None:
        """The recurrence of ``block`` within a step."""
        rows = []
        for own in (self._within[e] for e in block):
            body = substitute(self._body(own.timed.equation, block), own.timed.table)
            rows.append(Row(own.state, own.axes, body, own.domain, 1))
        rows = rotated(rows)
        definitions = tuple(row.definition() for row in rows)
        group = Recurrence(tuple(row.state for row in rows), definitions, (1,) * len(rows), False)
        step_of(group)
        self._tensors.update(zip(block, group.tensors, strict=False))

    def _body(self, equation: Equation, within: Iterable[Equation] = ()) -> Expr:
        """That of ``equation`` over its own axes, where the clocks are axes too: reads of others as those of states and tensors."""
        beside = set(within)
        clock = self.nest.outer.times[equation]

        def rule(node: Read, moved: Read) -> Expr:
            if not isinstance(node.tensor, Stand):
                return moved
            target, lag = node.tensor.equation, self.nest.outer.lag(equation, node).least
            then = normal(clock - lag)
            if target in self._timed:
                return self._timed[target].read(then, moved.indices)
            own = self._within[target]
            if lag:
                return self._read_shown(target, then, moved.indices)
            if target not in beside:
                return Read(self._tensors[target], own.place(then, moved.indices))
            reader = self._within[equation]
            steps = reader.lags.lag(equation, node)
            place = own.place(then, moved.indices)
            return Read(
                own.state,
                [
                    place[0],
                    normal(reader.timed.time - steps.least) if steps.is_fixed else place[1],
                    *place[2:],
                ],
            )

        return rewrite_reads(equation.body, rule)

    def _read_shown(self, target: Equation, then: Expr, indices: Sequence[Expr]) -> Expr:
        own = self._within[target]
        time = own.time(indices)
        time = time if (target, time) in self._shown else _ALL
        table = dict(zip(target.axes, indices, strict=True))
        rest = [table[a] for a in self._axes_shown(target, time)]
        return Read(self._shown[target, time], [then, *rest])

    # --- what others see

    def _seen(self, group: Recurrence) -> dict[Equation, Made]:
        tensors: dict[Tensor, Tensor] = dict(zip(group.states, group.tensors, strict=True))
        whole = {copied_by(d): t for d, t in zip(group.definitions, group.tensors, strict=True)}
        found: dict[Equation, Made] = {}
        for equation, timed in self._timed.items():
            found[equation] = Made(equation.axes, Read(tensors[timed.state], timed.place(equation.axes)))
        for equation, own in self._within.items():
            states = {time: tensors[s] for (e, time), s in self._shown.items() if e is equation}
            found[equation] = _Seen(equation.axes, TRUE, own, states, whole[self._tensors[equation]])
        return found

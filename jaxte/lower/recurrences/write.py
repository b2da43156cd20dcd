"""A recurrence: a function of one position, lowered as any definitions are, and ``lax.scan`` of it over all positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxte.lang.expr import as_expr
from jaxte.lang.limits import AGAIN, FEW
from jaxte.lower.arrays.data import DynamicUpdate
from jaxte.lower.arrays.elementwise import Arange, Full, Name, Number
from jaxte.lower.arrays.loops import Carried, Tuple
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import ALL, NEW, Entry, Index, Transpose, View
from jaxte.lower.code.choice import Choice
from jaxte.lower.code.vocabulary import AnyStatement, Function, Statement, tensor_name
from jaxte.lower.recurrences.frames import taken_before
from jaxte.lower.recurrences.reads import RING, Reads, Ring, ring_of
from jaxte.lower.recurrences.written import (
    Beside,
    choices_of,
    ended_by,
    read_again,
    spread,
    written_step,
    zeros,
)
from jaxte.lower.tiles.functions_in_common import with_common_functions
from jaxte.lower.tiles.tiling import Tiling
from jaxte.lower.tiles.write import Writer, Written
from jaxte.sets.intervals import known as number_of
from jaxte.tensors.recurrences.node import Final, Recurrence, Recurrent, State
from jaxte.tensors.recurrences.step import Step
from jaxte.tensors.tensor import Tensor


def recurrence_statements(
    wanted: Sequence[Recurrent], idents: Mapping[Tensor, str], writer: Writer
) -> Written:
    """The statements that compute the tensors ``wanted`` of one recurrence.

    Args:
        wanted: those that something else reads; the others are carried from step to step, and nowhere else.
        idents: names of the tensors that exist before.
        writer: writes what a step consists of.
    """
    group = wanted[0].group
    names = writer.shared.names
    targets: dict[Tensor, str] = {tensor: names.new(tensor.name) for tensor in wanted}
    scope = next(iter(targets.values()))
    if number_of(as_expr(group.extent)) == 0:
        nothing = [tensor_name(targets[t], t) for t in wanted]
        made = [Statement(scope, n.identifier, Full(n.shape, Number(0), n.kind[0])) for n in nothing]
        return Written([*made], targets, [Choice(t.name, "constant") for t in wanted])
    step = written_step(group, writer.shared.policy, [group.states[t.position] for t in wanted])
    text = Text(group, step, dict(idents), writer, scope, ended_by(wanted))
    rows = [t.position for t in wanted if text.is_stacked(t)]
    function = text.function(names.new(f"{scope}_step"), rows)
    loop = text.loop(function, targets)
    moved = [s for t in wanted for s in text.in_place(t, targets[t])]
    return Written(
        [*text.before, function, loop, *moved], targets, choices_of(wanted, text.step, text.choices)
    )


@dataclass
class Text:
    """A recurrence that is being written.

    Attributes:
        known: names of tensors, outside and in a step.
        ended: the states of which the loop hands on what it ends with; they are carried, though no step may read them.
        parameters: of the function of a step.
        carried: what is carried, state by state, and from how many steps ago, the step before first; RING where it is the last values of a state in one array, None
            where it is all positions so far.
        choices: what became of the tensors of a step.
        beside: what a step is handed of others, parameters behind its own.
        before: statements that come before the loop, and make what each step reads.
        rings: the last values of states, as arrays.
        reads: what a step reads of other tensors.
    """

    group: Recurrence
    step: Step
    known: dict[Tensor, str]
    writer: Writer
    scope: str
    ended: frozenset[State] = frozenset()
    parameters: list[str] = field(default_factory=list)
    carried: list[tuple[State, int | None, str]] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    beside: Sequence[Beside] = ()
    before: list[Statement] = field(default_factory=list)
    rings: dict[State, Ring] = field(default_factory=dict)
    reads: Reads = field(init=False)

    def __post_init__(self) -> None:
        self.reads = Reads(self.step, self.known, self.writer, self.scope, self.beside)

    def function(self, name: str, rows: Sequence[int]) -> Function:
        """One step.

        Args:
            name: of the function.
            rows: numbers of the tensors that it returns beside what is carried on.
        """
        outside = frozenset(self.known.values())
        lines = self.handed(frozenset(self.known))
        policy = self.writer.shared.policy
        once = read_again(self.step, policy)
        tensors = with_common_functions(
            Tiling(tuple(self.step.order), {}, {}, once=once), policy, is_step=True
        )
        inner = self.writer.program(tensors, self.known, self.scope)
        lines += inner.statements
        before, lines = taken_before(lines, outside, self.writer.shared.names)
        self.before = [*self.reads.turned.values(), *before]
        self.choices = list(inner.choices)
        results = [tensor_name(inner.names.get(r, ""), r) for r in self.step.results]
        found = [results[n] for n in rows]
        row: Node = found[0] if len(found) == 1 else Tuple(tuple(found)) if found else Name("None")
        result = Tuple((self.carried_on(results, lines), row))
        return Function(self.scope, name, tuple(self.parameters), tuple(lines), result)

    # --- the beginning of a step

    def handed(self, outside: frozenset[Tensor]) -> list[AnyStatement]:
        """The statements that name what a step is handed; ``outside`` exists before the loop."""
        names, step = self.writer.shared.names, self.step
        for state in self.group.states:
            length = ring_of(step, state)
            deepest = (state, 1) in step.carried if length else step.depth(state)
            for lag in range(1, max(deepest, state in self.ended) + 1):
                placeholder = step.carried.get((state, lag))
                label = f"{state.name}_before" if placeholder is None else placeholder.name
                self.carried.append((state, lag, names.new(label)))
                if placeholder is not None:
                    self.known[placeholder] = self.carried[-1][2]
            if length:
                ring = self.rings[state] = Ring(self.group, state, length, names.new(f"{state.name}_recent"))
                self.carried.append((state, RING, ring.name))
        for state, placeholder in step.history.items():
            self.known[placeholder] = names.new(placeholder.name)
            self.carried.append((state, None, self.known[placeholder]))
        listed = [own for _, _, own in self.carried]
        lines: list[AnyStatement] = []
        if len(listed) == 1:
            self.parameters += listed
        else:
            self.parameters.append(names.new("before"))
        if len(listed) > 1:
            lines.append(Statement(self.scope, ", ".join(listed), Name(self.parameters[0])))
        self.known[step.now] = names.new(step.now.name)
        self.parameters.append(self.known[step.now])
        for beside in self.beside:
            self.parameters.append(beside.parameter)
            if len(beside.names) > 1:
                listed = [own.identifier for own in beside.names.values()]
                lines.append(Statement(self.scope, ", ".join(listed), Name(beside.parameter)))
        lines += self._from_rings()
        for placeholder, own in step.slices.items():
            node = self.reads.of(placeholder, own, outside, lines)
            self.known[placeholder] = names.new(f"{placeholder.name}_{step.now.name}")
            lines.append(Statement(self.scope, self.known[placeholder], node))
        return lines

    def _from_rings(self) -> list[AnyStatement]:
        """The statements that name the values which a step reads of several steps before."""
        step, lines = self.step, list[AnyStatement]()
        for (state, lag), placeholder in step.carried.items():
            if lag > 1 and state in self.rings:
                ring = self.rings[state]
                row = ring.row(
                    self.reads.position(ring.place(step.clock, lag), lines),
                    self.writer.shared.policy.facts.drops_barriers,
                )
                self.known[placeholder] = self.writer.shared.names.new(placeholder.name)
                lines.append(Statement(self.scope, self.known[placeholder], row))
        return lines

    # --- the end of a step, and the loop

    def carried_on(self, results: Sequence[Name], lines: list[AnyStatement]) -> Node:
        """What the next step is handed."""
        by_key = {(state, lag): own for state, lag, own in self.carried}
        found: list[Node] = []
        for state, lag, before in self.carried:
            number = self.group.numbers[state]
            own = results[number]
            if lag is None:
                found.append(self._added(state, before, own))
                continue
            if lag == RING:
                ring = self.rings[state]
                found.append(ring.with_row(own, self.reads.position(ring.place(self.step.clock, 0), lines)))
                continue
            found.append(own if lag == 1 else Name(by_key[state, lag - 1], own.extents, own.own_kind))
        return found[0] if len(found) == 1 else Tuple(tuple(found))

    def _added(self, state: State, so_far: str, value: Name) -> Node:
        """All positions of ``state`` so far, and this one."""
        place = self.group.place_of(state)
        now = tensor_name(self.known[self.step.now], self.step.now)
        array = tensor_name(so_far, self.step.history[state])
        row = View(value, Index((*(ALL,) * place, NEW, *(ALL,) * (len(value.shape) - place))))
        return DynamicUpdate(array, row, now, place)

    def is_stacked(self, tensor: Recurrent) -> bool:
        """Whether the loop returns the positions of ``tensor`` one by one: it hands on all so far where a step reads them."""
        return not isinstance(tensor, Final) and self.group.states[tensor.position] not in self.step.history

    def loop(self, function: Function, targets: Mapping[Tensor, str]) -> Statement:
        extent = as_expr(self.group.extent)
        count = number_of(extent)
        stacked = [own for t, own in targets.items() if isinstance(t, Recurrent) and self.is_stacked(t)]
        made = stacked[0] if len(stacked) == 1 else f"({', '.join(stacked)})" if stacked else "_"
        unroll = 1
        if count is not None and 1 < count <= FEW:
            # Times that XLA computes an element of an unrolled step, for each of the shifted reads of it, in place of keeping it.
            unroll = count if spread(self.step) ** (count - 1) <= AGAIN else 1
        positions = Arange(0, extent, 1, "int32")
        scan = Carried(function.name, self.starts, positions, self.group.reverse, unroll)
        return Statement(self.scope, f"{self.ends(targets)}, {made}", scan)

    def ends(self, targets: Mapping[Tensor, str]) -> str:
        """The names of what the loop carries on from its last position."""
        ends = {
            (self.group.states[t.position], 1 if isinstance(t, Final) else None): own
            for t, own in targets.items()
            if isinstance(t, Recurrent) and not self.is_stacked(t)
        }
        found = [ends.get((state, lag), "_") for state, lag, _ in self.carried]
        return (found or ["_"])[0] if len(found) < 2 else f"({', '.join(found)})"

    @property
    def starts(self) -> tuple[Node, ...]:
        """What the first step is handed."""
        return tuple(self._start(state, lag) for state, lag, _ in self.carried)

    def _start(self, state: State, lag: int | None) -> Node:
        """The value of ``state`` that many positions before the first; zero where nothing reads it."""
        if lag is None:
            return zeros(state.shape, state.dtype)
        place = self.group.place_of(state)
        before = self.step.before.get(state)
        if lag == RING:
            return self.rings[state].start(
                None if before is None else tensor_name(self.known[before], before)
            )
        shape = tuple(e for n, e in enumerate(state.shape) if n != place)
        length = None if before is None else number_of(as_expr(before.shape[place]))
        if before is None or (length is not None and lag > length):  # no read asks for it
            return zeros(shape, state.dtype)
        at = as_expr(lag - 1) if self.group.reverse else as_expr(before.shape[place]) - lag
        entries: tuple[Entry, ...] = (*(ALL,) * place, at)
        return View(tensor_name(self.known[before], before), Index(entries))

    def in_place(self, tensor: Recurrent, target: str) -> list[Statement]:
        """The statement that puts the axis of the recurrence, which comes first, where it stands in ``tensor``."""
        place = self.group.places[tensor.position]
        if not place or not self.is_stacked(tensor):
            return []
        own = tensor_name(target, tensor)
        shape = own.shape
        first = Name(target, (shape[place], *shape[:place], *shape[place + 1 :]), own.kind)
        order = (*range(1, place + 1), 0, *range(place + 1, tensor.ndim))
        return [Statement(self.scope, target, View(first, Transpose(order)))]

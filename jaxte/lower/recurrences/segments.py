"""Recurrences in segments: what is kept is what each segment begins with, and a recurrence from the other end computes a segment again.

The forward loop is one over segments, each a loop over its positions. The backward loop takes the segments from the last to the first: it runs a
segment forward, which stacks its positions, or what the segments within it begin with, and then backward over these. With ``d`` levels of ``n``
segments each, ``n ** d`` positions take ``d * n`` states of memory, and each position is computed ``d`` times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang.expr import as_expr
from jaxte.lang.operators import ADD, MULTIPLY, SUBTRACT
from jaxte.lower.arrays.data import DynamicIndex
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.leaves import Arange, Name, Number
from jaxte.lower.arrays.loops import Carried, Tuple
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.steps import Index, Range, Reshape
from jaxte.lower.arrays.views import View
from jaxte.lower.code.vocabulary import AnyStatement, Function, Statement
from jaxte.lower.recurrences.replays import reach_of
from jaxte.lower.recurrences.write import Text, choices_of, ended_by, recurrence_statements
from jaxte.lower.recurrences.written import written_step
from jaxte.lower.tiles.write import Writer, Written
from jaxte.tensors.recurrences.node import Final, Kept, Recurrence, Recurrent, Replay
from jaxte.tensors.tensor import Tensor

_INT = ("int32", False)


def loop_statements(wanted: Sequence[Recurrent], idents: Mapping[Tensor, str], writer: Writer) -> Written:
    """The statements that compute the tensors ``wanted`` of one recurrence."""
    if isinstance(wanted[0].group, Replay):
        return replay_statements(wanted, idents, writer)
    if any(isinstance(t, Kept) for t in wanted):
        return segment_statements(wanted, idents, writer)
    return recurrence_statements(wanted, idents, writer)


def segment_statements(wanted: Sequence[Recurrent], idents: Mapping[Tensor, str], writer: Writer) -> Written:
    """The statements of a forward loop that keeps what its segments begin with; ``wanted`` are these, and last values."""
    names, group = writer.shared.names, wanted[0].group
    targets: dict[Tensor, str] = {tensor: names.new(tensor.name) for tensor in wanted}
    kept = {t.position: t for t in wanted if isinstance(t, Kept)}
    levels = next(iter(kept.values())).levels
    scope = next(iter(targets.values()))
    text = Text(
        group, written_step(group, writer.shared.policy), dict(idents), writer, scope, ended_by(wanted)
    )
    step = text.function(names.new(f"{scope}_step"), [], _most(group, levels))
    sweep = _sweep(text, step.name, prod(levels[1:]))
    numbers = [group.numbers[state] for state, *_ in text.carried]
    made = [targets[kept[n]] if n in kept else "_" for n in numbers]
    loop = Carried(sweep.name, text.starts, Arange(0, as_expr(levels[0]), 1, "int32"))
    target = f"{text.ends(targets)}, {_several(made)}"
    found: list[AnyStatement] = [step, sweep, Statement(scope, target, loop)]
    return Written(found, targets, choices_of(wanted, text.step, text.choices))


def replay_statements(wanted: Sequence[Recurrent], idents: Mapping[Tensor, str], writer: Writer) -> Written:
    """The statements of a backward loop that computes the positions of another one again; ``wanted`` are its last values."""
    names, group = writer.shared.names, wanted[0].group
    assert isinstance(group, Replay)
    targets: dict[Tensor, str] = {tensor: names.new(tensor.name) for tensor in wanted}
    scope = next(iter(targets.values()))
    levels = group.kept[0].levels
    forward = Text(
        group.source, written_step(group.source, writer.shared.policy), dict(idents), writer, scope
    )
    label = group.source.states[0].name
    found: list[AnyStatement] = []
    again = forward.function(names.new(f"{label}_again"), [], _most(group.source, levels), begins=True)
    found.append(again)
    onward = ""
    if len(levels) > 2:
        other = Text(
            group.source, written_step(group.source, writer.shared.policy), dict(idents), writer, scope
        )
        function = other.function(names.new(f"{label}_step"), [], _most(group.source, levels))
        found.append(function)
        onward = function.name
    rows = [t for t in wanted if not isinstance(t, Final)]
    own = _Backward(
        group, forward, again.name, onward, levels, idents, writer, scope, [t.position for t in rows]
    )
    by_state = {t.group.states[t.position]: t for t in group.kept}
    arrays = [_array(idents[by_state[state]], by_state[state]) for state, *_ in forward.carried]
    outer = own.segment(0, arrays, Number(0))
    text = own.text
    found.append(outer)
    loop = Carried(outer.name, text.starts, Arange(0, as_expr(levels[0]), 1, "int32"), True)
    stacked = _several([targets[t] for t in rows]) if rows else "_"
    found.append(Statement(scope, f"{text.ends(targets)}, {stacked}", loop))
    for tensor in rows:
        found += [_in_a_row(text, tensor, targets[tensor], levels), *text.in_place(tensor, targets[tensor])]
    return Written(found, targets, choices_of(wanted, text.step, text.choices))


def _in_a_row(text: Text, tensor: Recurrent, target: str, levels: Sequence[int]) -> Statement:
    """The statement that puts the positions of all segments, stacked level by level, one after the other."""
    place = text.group.places[tensor.position]
    rest = [as_expr(e) for n, e in enumerate(tensor.shape) if n != place]
    own = Name(target, (*map(as_expr, levels), *rest), (tensor.dtype, False))
    joined: Node = View(own, Reshape((as_expr(prod(levels)), *rest)))
    if prod(levels) != text.group.extent:
        joined = View(joined, Index((Range(None, as_expr(text.group.extent)),)))
    return Statement(text.scope, target, joined)


@dataclass
class _Backward:
    """A loop over segments from the last to the first, being written.

    Attributes:
        forward: the recurrence that is computed again; ``again`` is its step that returns what it was handed, ``onward`` the one that returns nothing.
        rows: numbers of the tensors that are stacked.
        text: the step backward.
    """

    group: Replay
    forward: Text
    again: str
    onward: str
    levels: tuple[int, ...]
    idents: Mapping[Tensor, str]
    writer: Writer
    scope: str
    rows: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.text = Text(
            self.group,
            written_step(self.group, self.writer.shared.policy),
            dict(self.idents),
            self.writer,
            self.scope,
        )

    def segment(self, level: int, arrays: Sequence[Name], first: Node) -> Function:
        """The function of one segment of ``level``, whose beginnings ``arrays`` have from segment ``first`` on."""
        names, scope = self.writer.shared.names, self.scope
        before, number = names.new("so_far"), Name(names.new("segment"), (), _INT)
        at: Node = number if isinstance(first, Number) else Apply(SUBTRACT, (number, first))
        start = tuple(DynamicIndex(array, at, 0) for array in arrays)
        length = self.levels[level + 1]
        begin = Name(names.new("first"), (), _INT)
        lines: list[AnyStatement] = [
            Statement(scope, begin.identifier, Apply(MULTIPLY, (Number(length), number)))
        ]
        is_last = level == len(self.levels) - 2
        more = 1 + (reach_of(self.group) or 0) if is_last else 0
        made = [
            Name(names.new(f"{a.identifier}_here"), (as_expr(length + more), *a.shape[1:]), a.kind)
            for a in arrays
        ]
        if is_last:
            function = self.again
        else:
            sweep = _sweep(self.forward, self.onward, prod(self.levels[level + 2 :]))
            lines.append(sweep)
            function = sweep.name
        positions = _from(begin, length + more)
        lines.append(
            Statement(
                scope, f"_, {_several([m.identifier for m in made])}", Carried(function, start, positions)
            )
        )
        if is_last:
            inner = self._step(made, begin, lines)
        else:
            inner = self.segment(level + 1, made, begin)
        after, stacked = names.new("after"), names.new("rows") if self.rows else "_"
        loop = Carried(inner.name, (Name(before),), _from(begin, length), True)
        lines += [inner, Statement(scope, f"{after}, {stacked}", loop)]
        result = Tuple((Name(after), Name(stacked if self.rows else "None")))
        return Function(
            scope,
            names.new(f"{self.group.states[0].name}_segment"),
            (before, number.identifier),
            tuple(lines),
            result,
        )

    def _step(self, made: Sequence[Name], begin: Name, lines: list[AnyStatement]) -> Function:
        """The step backward within a segment, of which ``made`` has the positions from the one before ``begin`` on."""
        names, source = self.writer.shared.names, self.group.source
        before = Name(names.new("before_first"), (), _INT)
        lines.append(Statement(self.scope, before.identifier, Apply(SUBTRACT, (begin, Number(1)))))
        near: dict[Tensor, tuple[Name, Name]] = {
            source.tensors[source.numbers[state]]: (array, before)
            for (state, *_), array in zip(self.forward.carried, made, strict=True)
        }
        self.text.has_near(near)
        name = names.new(f"{self.group.states[0].name}_step")
        return self.text.function(name, self.rows, _most(source, self.levels))


def _sweep(text: Text, step: str, length: int) -> Function:
    """The function of one segment forward, which returns what it began with."""
    names = text.writer.shared.names
    before, after = names.new("before_segment"), names.new("after_segment")
    number = Name(names.new("segment"), (), _INT)
    first = Apply(MULTIPLY, (Number(length), number))
    loop = Carried(step, (Name(before),), _from(first, length))
    lines = (Statement(text.scope, f"{after}, _", loop),)
    label = text.group.states[0].name
    result = Tuple((Name(after), Name(before)))
    return Function(text.scope, names.new(f"{label}_sweep"), (before, number.identifier), lines, result)


def _from(first: Node, count: int) -> Node:
    return Apply(ADD, (first, Arange(0, as_expr(count), 1, "int32")))


def _array(identifier: str, tensor: Tensor) -> Name:
    return Name(identifier, tuple(as_expr(e) for e in tensor.shape), (tensor.dtype, False))


def _several(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _most(group: Recurrence, levels: Sequence[int]) -> int | None:
    """The number of positions, where segments have more."""
    extent = group.extent
    assert isinstance(extent, int)
    return None if prod(levels) == extent else extent

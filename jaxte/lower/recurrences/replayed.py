"""Loops of which some positions are kept, and loops from the other end that compute the others again, by the binomial schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.loops import Binomial, Replayed
from jaxte.lower.code.vocabulary import AnyStatement, Statement, tensor_name
from jaxte.lower.recurrences.replays import reach_of
from jaxte.lower.recurrences.write import Text, recurrence_statements
from jaxte.lower.recurrences.written import Beside, choices_of, ended_by, written_step
from jaxte.lower.tiles.write import Writer, Written
from jaxte.tensors.recurrences.node import Final, Kept, Recurrence, Recurrent, Replay
from jaxte.tensors.tensor import Tensor


def loop_statements(wanted: Sequence[Recurrent], idents: Mapping[Tensor, str], writer: Writer) -> Written:
    """The statements that compute the tensors ``wanted`` of one recurrence."""
    if isinstance(wanted[0].group, Replay):
        return replay_statements(wanted, idents, writer)
    if any(isinstance(t, Kept) for t in wanted):
        return keeping_statements(wanted, idents, writer)
    return recurrence_statements(wanted, idents, writer)


def keeping_statements(wanted: Sequence[Recurrent], idents: Mapping[Tensor, str], writer: Writer) -> Written:
    """The statements of a forward loop that keeps some positions; ``wanted`` are these, and last values."""
    names, group = writer.shared.names, wanted[0].group
    targets: dict[Tensor, str] = {tensor: names.new(tensor.name) for tensor in wanted}
    kept = {t.position: t for t in wanted if isinstance(t, Kept)}
    scope = next(iter(targets.values()))
    step = written_step(group, writer.shared.policy)
    text = Text(group, step, dict(idents), writer, scope, ended_by(wanted))
    function = text.function(names.new(f"{scope}_step"), [])
    numbers = [group.numbers[state] for state, *_ in text.carried]
    made = [targets[kept[n]] if n in kept else "_" for n in numbers]
    loop = Binomial(function.name, text.starts, _steps(group), next(iter(kept.values())).slots)
    statement = Statement(scope, f"{text.ends(targets)}, {_several(made)}", loop)
    return Written([*text.before, function, statement], targets, choices_of(wanted, text.step, text.choices))


def replay_statements(wanted: Sequence[Recurrent], idents: Mapping[Tensor, str], writer: Writer) -> Written:
    """The statements of a backward loop that computes the positions of another one again; ``wanted`` are its last values, and what it stacks."""
    names, group, policy = writer.shared.names, wanted[0].group, writer.shared.policy
    assert isinstance(group, Replay)
    source = group.source
    targets: dict[Tensor, str] = {tensor: names.new(tensor.name) for tensor in wanted}
    scope = next(iter(targets.values()))
    forward = Text(
        source, written_step(source, policy), dict(idents), writer, scope, frozenset(source.states)
    )
    again = forward.function(names.new(f"{source.states[0].name}_again"), [])
    carried = [source.numbers[state] for state, *_ in forward.carried]
    ahead = max(0, reach_of(group) or 0)
    beside = [_beside(source, carried, offset, writer) for offset in range(-1, ahead + 1)]
    text = Text(
        group, written_step(group, policy), dict(idents), writer, scope, ended_by(wanted), beside=beside
    )
    rows = [t for t in wanted if not isinstance(t, Final)]
    back = text.function(names.new(f"{group.states[0].name}_step"), [t.position for t in rows])
    kept = {t.position: t for t in group.kept}
    loop = Replayed(
        again.name,
        back.name,
        text.starts,
        tuple(tensor_name(idents[kept[n]], kept[n]) for n in carried),
        tuple(tensor_name(idents[source.finals[n]], source.finals[n]) for n in carried),
        _steps(source),
        group.kept[0].slots,
        ahead,
    )
    stacked = _several([targets[t] for t in rows]) if rows else "_"
    moved = [s for t in rows for s in text.in_place(t, targets[t])]
    statement = Statement(scope, f"{text.ends(targets)}, {stacked}", loop)
    lines: list[AnyStatement] = [*forward.before, again, *text.before, back, statement, *moved]
    return Written(lines, targets, choices_of(wanted, text.step, text.choices))


def _beside(source: Recurrence, carried: Sequence[int], offset: int, writer: Writer) -> Beside:
    """What a step backward is handed of the tensors of ``source``."""
    names = writer.shared.names
    word = {-1: "before", 0: "here", 1: "behind"}[offset]
    own: dict[Tensor, Name] = {}
    for n in carried:
        final = source.finals[n]
        own[source.tensors[n]] = tensor_name(names.new(f"{source.states[n].name}_{word}"), final)
    parameter = next(iter(own.values())).identifier if len(own) == 1 else names.new(f"states_{word}")
    return Beside(parameter, offset, own)


def _steps(group: Recurrence) -> int:
    assert isinstance(group.extent, int)
    return group.extent


def _several(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"

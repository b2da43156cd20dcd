"""Definitions that are equal up to names are lowered once: the steps of a user's own loop, layers of one kind.

What a body asks of the function around it, new names and values that are written already, is recorded while the first of several equal
definitions is lowered. The next one gets the same statements under its own names, where it would be told the same: so the text is what it would be
if each were lowered by itself. Lines are broken by their length, so names have to be as long as those of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxte.lang.graphs import ordered
from jaxte.lang.limits import SEVERAL
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.node import Node, names_of, nodes_below, rebuilt
from jaxte.lower.body.assignment import Assignment, Shared
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.choice import Choice
from jaxte.lower.code.lines import Names
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.lower.program.verdicts import verdict_of
from jaxte.tensors.structure import structure_of
from jaxte.tensors.tensor import Compute, Tensor

_NEW, _NUMBERED, _ASKED, _CALLED = "new", "numbered", "asked", "called"

LowerTensor = Callable[[Assignment, Shared, Compute], Body]


@dataclass(frozen=True)
class Lowered:
    """What a tensor was lowered to: its statements, what they read in slices, and what ``te.explain`` says of it."""

    statements: Sequence[AnyStatement]
    sliced: tuple[Tensor, ...]
    choice: Choice


@dataclass(frozen=True)
class _Event:
    """What was asked: a name like ``text``, numbered or not, or what ``node`` is called; or that ``node`` is called ``answer``."""

    kind: str  # _NEW, _NUMBERED, _ASKED or _CALLED
    answer: str | None
    text: str = ""
    node: Node | None = None


@dataclass(frozen=True)
class _Record:
    """How ``tensor`` was lowered."""

    tensor: Compute
    identifiers: tuple[str, ...]
    events: tuple[_Event, ...]
    lowered: Lowered


@dataclass
class Repeated:
    """The definitions of one function that were lowered, by their structure."""

    lower: LowerTensor
    _records: dict[Hashable, list[_Record]] = field(default_factory=dict)

    def lowered(self, own: Assignment, shared: Shared, tensor: Compute) -> Lowered:
        """``tensor`` as statements: those of an equal one under other names, or by a body of its own."""
        structure = None if own.in_tiles else structure_of(tensor)
        if structure is None:
            return _by_itself(self.lower(own, shared, tensor), tensor, own, shared)
        identifiers = (own.target, *(own.tensors[source] for source in tensor.inputs))
        key = structure, _pattern(identifiers), own.label == own.target
        known = self._records.setdefault(key, [])
        for record in reversed(known):
            found = _Replay(record, shared, tensor, identifiers).lowered()
            if found is not None:
                return found
        events: list[_Event] = []
        names, written = _RecordedNames(shared.names, events), _RecordedTable(shared.written, events)
        body = self.lower(own, replace(shared, names=names, written=written), tensor)
        shared.names.become(names)
        shared.written.update(written)
        found = _by_itself(body, tensor, own, shared)
        # Records of one structure: the first definitions of a loop are told what later ones are not.
        if len(known) < SEVERAL and _has_names_alone(found, events):
            known.append(_Record(tensor, identifiers, tuple(events), found))
        return found


def _by_itself(body: Body, tensor: Compute, own: Assignment, shared: Shared) -> Lowered:
    choice = replace(body.report.choice(tensor.name), target=own.target)
    if not own.in_tiles:
        choice = replace(
            choice, verdict=verdict_of(tensor, body.statements, choice.estimates, shared.policy.facts)
        )
    return Lowered(body.statements, body.sliced, choice)


def _has_names_alone(found: Lowered, events: Sequence[_Event]) -> bool:
    """Whether identifiers stand in names of arrays and nowhere else, as those of functions do."""
    given = {event.answer for event in events}
    nodes = nodes_below(*(s.source for s in found.statements if isinstance(s, Statement)))
    texts = {v for node in nodes if not isinstance(node, Name) for v in _texts(node)}
    return all(isinstance(s, Statement) for s in found.statements) and not given & texts


def _texts(node: Node) -> list[str]:
    return [value for name in names_of(node) if isinstance(value := getattr(node, name), str)]


def _pattern(identifiers: Sequence[str]) -> Hashable:
    """What identifiers have to have in common: their lengths, and which of them are one, or what others begin with."""
    begins = [[b.startswith(a) for b in identifiers] for a in identifiers]
    return tuple(map(len, identifiers)), tuple(map(tuple, begins))


class _RecordedNames(Names):
    """Names that are noted as they are given."""

    def __init__(self, known: Names, events: list[_Event]) -> None:
        super().__init__()
        self.become(known)
        self._events = events

    def new(self, wanted: str) -> str:
        before = len(self._events)
        found = super().new(wanted)
        # in place of a number that was asked for within
        self._events[before:] = [_Event(_NEW, found, wanted)]
        return found

    def numbered(self, base: str) -> str:
        found = super().numbered(base)
        self._events.append(_Event(_NUMBERED, found, base))
        return found


class _RecordedTable(dict[Node, str]):
    """What nodes are called, where it is noted what is asked and added."""

    def __init__(self, known: Mapping[Node, str], events: list[_Event]) -> None:
        super().__init__(known)
        self._events = events

    def __contains__(self, node: object) -> bool:
        assert isinstance(node, Node)
        self._events.append(_Event(_ASKED, self.get(node), node=node))
        return super().__contains__(node)

    def __setitem__(self, node: Node, name: str) -> None:
        self._events.append(_Event(_CALLED, name, node=node))
        super().__setitem__(node, name)


class _Replay:
    """The statements of ``record`` for ``tensor``, of the same structure."""

    def __init__(self, record: _Record, shared: Shared, tensor: Compute, identifiers: Sequence[str]) -> None:
        self._record = record
        self._shared = shared
        self._tensor = tensor
        self._names = shared.names.copied()
        self._called: dict[Node, str] = {}
        self._table = dict(zip(record.identifiers, identifiers, strict=True))
        self._nodes: dict[Node, Node] = {}

    def lowered(self) -> Lowered | None:
        """What ``tensor`` is lowered to; None where the function around it gives other answers than those that are recorded."""
        if not all(map(self._holds, self._record.events)):
            return None
        own = self._record.lowered
        statements = [self._statement(s) for s in own.statements if isinstance(s, Statement)]
        choice = self._choice(own.choice, statements)
        if choice is None:
            return None
        self._shared.names.become(self._names)
        self._shared.written.update(self._called)
        tensors = dict(zip(self._record.tensor.inputs, self._tensor.inputs, strict=True))
        return Lowered(statements, tuple(tensors[t] for t in own.sliced), choice)

    def _holds(self, event: _Event) -> bool:
        """Whether an answer is the recorded one, up to names; what is asked changes the state here as it did there."""
        if event.node is None:
            text = self._hint(event.text)
            if text is None:
                return False
            given = self._names.new(text) if event.kind == _NEW else self._names.numbered(text)
            return self._is(event.answer, given)
        node = self._node(event.node)
        if event.kind == _CALLED:
            assert event.answer is not None
            self._called[node] = self._table.get(event.answer, event.answer)
            return True
        return self._is(event.answer, self._called.get(node, self._shared.written.get(node)))

    def _is(self, recorded: str | None, now: str | None) -> bool:
        if recorded is None or now is None:
            return recorded is now
        return len(recorded) == len(now) and self._table.setdefault(recorded, now) == now

    def _hint(self, text: str) -> str | None:
        """What ``text``, made of an identifier and an ending, is here; None where that cannot be told."""
        begins = [own for own in self._table if text == own or text.startswith(f"{own}_")]
        first = max(begins, key=len, default="")
        rest = text[len(first) :]
        if any(own in rest for own, now in self._table.items() if own != now):
            return None
        return self._table.get(first, first) + rest

    def _statement(self, statement: Statement) -> Statement:
        scope, target = (self._table.get(own, own) for own in (statement.scope, statement.target))
        return Statement(scope, target, self._node(statement.source))

    def _node(self, root: Node) -> Node:
        """``root`` with the names of here."""
        for node in ordered([root], lambda node: () if node in self._nodes else node.operands):
            if node not in self._nodes:
                self._nodes[node] = self._renamed(node)
        return self._nodes[root]

    def _renamed(self, node: Node) -> Node:
        if isinstance(node, Name):
            own = self._table.get(node.identifier, node.identifier)
            return node if own == node.identifier else Name(own, node.extents, node.own_kind)
        return rebuilt(node, self._nodes)

    def _choice(self, choice: Choice, statements: Sequence[Statement]) -> Choice | None:
        """What is said of the other tensor, about this one; None where its text has names in it."""
        one, other = self._record.tensor, self._tensor
        names = [(a.name, b.name) for a, b in zip((one, *one.inputs), (other, *other.inputs), strict=True)]
        target = self._table[choice.target]
        if all(a == b for a, b in names):
            return replace(choice, target=target)
        told = " ".join([choice.reason, *(text for pair in choice.refused for text in pair)])
        if any(a in told for a, b in names if a != b):
            return None
        verdict = choice.verdict and verdict_of(
            other, statements, choice.estimates, self._shared.policy.facts
        )
        return replace(choice, tensor=other.name, target=target, verdict=verdict)

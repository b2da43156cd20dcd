"""What statements of one function compute alike is written once, under one name, before what reads it first.

A body names what it uses several times, and the parts of long lines, one after the other as it is evaluated. A difference that the first term of a sum
mentions once and the second one twice has a name in the second alone, so that the two terms share nothing in the text, ``h / sqrt((u[1:] - u[:-1]) ** 2)``
beside ``h / sqrt(d ** 2)``. XLA finds what they share; who reads the text should not have to. So all statements are compared once they are there, each with
the names that any of them gives.

Rows may be gathered in two modes: a read that a guard keeps in range is clipped, which is the fastest; another read of the same rows, which may leave its tensor,
gives NaN there. Both are the second one, whichever tensor is lowered first.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from jaxte.lang.graphs import ordered
from jaxte.lower.arrays.data import CLIP, FILL, Call, Gather, Output
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.loops import Each
from jaxte.lower.arrays.node import Node, nodes_below, rebuilt, replaced, rewritten
from jaxte.lower.arrays.views import View
from jaxte.lower.body.statements import SHORT
from jaxte.lower.code.vocabulary import (
    WHEN_TRACED,
    AnyStatement,
    Function,
    PrefixFunction,
    Statement,
    with_sources,
)
from jaxte.lower.program.across.without_copies import named_inside

_NUMBERED = re.compile(r".+_\d+")
_TARGETS = re.compile(r"\w+")


def with_equal_values_once(
    statements: Sequence[AnyStatement], tensors: Collection[str], naming: Naming
) -> list[AnyStatement]:
    """``statements`` in which no value is computed by two, and no long one written twice for one tensor.

    Args:
        statements: those of one function.
        tensors: the names of tensors, which may be returned, or read by another function. One that is equal to a value before it is written as that.
        naming: makes new names, and texts.
    """
    times = Counter(s.target for s in statements)
    values = _Values(frozenset((*tensors, *named_inside(statements))), naming)
    found: list[AnyStatement] = []
    for part in _parts(statements, times):
        if isinstance(part, list):
            found += values.once(part)
        else:
            found.append(values.renamed(part))
    return found


def with_one_gather(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``statements`` in which clipped rows are read as those are that are gathered in whole."""
    own = [s.source for s in statements if isinstance(s, Statement) and Gather in s.source.kinds]
    gathers = [node for node in nodes_below(*own) if isinstance(node, Gather)]
    filled = {(g.array, g.positions): g for g in gathers if g.mode == FILL}
    clipped = [g for g in gathers if g.mode == CLIP and (g.array, g.positions) in filled]
    if not clipped:
        return list(statements)
    table: dict[Node, Node] = {g: filled[g.array, g.positions] for g in clipped}
    made: dict[Node, Name] = {}
    found: list[AnyStatement] = []
    for statement in statements:
        if isinstance(statement, Statement):
            source = replaced(statement.source, table)
            statement = replace(statement, source=made.get(source, source))
            if source in table.values():
                made.setdefault(source, Name(statement.target, source.shape, source.kind))
        found.append(statement)
    return found


def with_equal_functions_once(statements: Sequence[AnyStatement]) -> Sequence[AnyStatement]:
    """``statements`` in which each way to run through an axis in blocks is one function, called for all arrays that it fits."""
    if any(isinstance(s, Function) for s in statements):
        return statements  # which may call them
    first: dict[PrefixFunction, str] = {}
    gone: dict[str, str] = {}
    left: list[AnyStatement] = []
    for s in statements:
        if isinstance(s, PrefixFunction):
            name = first.setdefault(replace(s, name="", scope=""), s.name)
            if name != s.name:
                gone[s.name] = name
                continue
        left.append(s)
    if not gone:
        return statements

    def of_those_left(node: Node) -> Node:
        if isinstance(node, Call) and node.function in gone:
            return replace(node, function=gone[node.function])
        return node

    return with_sources(left, lambda source: rewritten(source, of_those_left))


def _parts(
    statements: Iterable[AnyStatement], times: Mapping[str, int]
) -> Iterator[list[Statement] | AnyStatement]:
    """Statements that may change places, in lists, and what stays in its place: functions, and what is assigned twice or when traced."""
    part: list[Statement] = []
    for s in statements:
        if isinstance(s, Statement) and times[s.target] == 1 and s.scope != WHEN_TRACED:
            part.append(s)
            continue
        yield part
        yield s
        part = []
    yield part


@dataclass(frozen=True)
class Naming:
    """New names, and the texts of nodes."""

    numbered: Callable[[str], str]
    text: Callable[[Node], str]


class _Values:
    """The values of one function so far; ``fixed`` are the names that stay as they are."""

    def __init__(self, fixed: frozenset[str], naming: Naming) -> None:
        self._fixed = fixed
        self._naming = naming
        self._known: dict[Node, str] = {}  # what values are called, by what they are made of
        self._new: dict[str, str] = {}  # what names of before are called

    def renamed(self, statement: AnyStatement) -> AnyStatement:
        """``statement``, which stays where it is."""
        return _renamed([statement], self._new)[0] if isinstance(statement, Statement) else statement

    def once(self, part: Sequence[Statement]) -> Sequence[Statement]:
        """``part`` without values that are there already, each before what reads it."""
        part = self._with_parts(_renamed(part, self._new))
        new: dict[str, str] = {}
        before: Sequence[Statement] = ()
        found: Sequence[Statement] = part
        while found != before:  # what has a name makes other values equal
            before = found
            found, gone = self._without_equal(_with_names(found))
            found, new = _renamed(found, gone), _one_after_the_other(new, gone)
        if found != part:
            targets = {name: s for s in found for name in _TARGETS.findall(s.target)}  # a loop has several
            found = ordered(found, lambda s: [targets[n] for n in _read(s.source) if n in targets])
            numbers = self._numbers([s.target for s in found], [s.target for s in part])
            found = _renamed(found, numbers)
            self._new |= _one_after_the_other(new, numbers)
        self._known |= {s.source: s.target for s in found if _is_value(s.source)}
        return found

    def _with_parts(self, part: Sequence[Statement]) -> Sequence[Statement]:
        """``part`` with statements for long values that several places in one scope are made of."""
        found: list[Statement] = []
        for scope, own in groupby(part, lambda s: s.scope):
            together = list(own)
            base = together[-1].target
            for node in _repeated([s.source for s in together], self._naming.text):
                found.append(Statement(scope, self._naming.numbered(base), node))
            found += together
        return found if len(found) > len(part) else part

    def _without_equal(self, part: Iterable[Statement]) -> tuple[list[Statement], dict[str, str]]:
        """``part`` without the second of two equal values, and the name of the first for that of each that is gone."""
        found: list[Statement] = []
        gone: dict[str, str] = {}
        known = dict(self._known)
        for s in part:
            first = known.setdefault(s.source, s.target) if _is_value(s.source) else s.target
            if isinstance(s.source, Name) and s.target not in self._fixed:
                first = gone.get(s.source.identifier, s.source.identifier)
            if first == s.target:
                found.append(s)
            elif s.target in self._fixed:
                found.append(replace(s, source=Name(first, s.source.shape, s.source.kind)))
            else:
                gone[s.target] = first
        return found, gone

    def _numbers(self, names: Iterable[str], given: Iterable[str]) -> dict[str, str]:
        """``names`` with the numbers behind them in this order, as few as there are among those that were ``given``."""
        ours, theirs = self._by_kind(names), self._by_kind(given)
        pairs = ((own, sorted(theirs[kind], key=_number)) for kind, own in ours.items() if kind in theirs)
        return {old: new for own, numbered in pairs for old, new in zip(own, numbered, strict=False)}

    def _by_kind(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The names that may change and are told apart by a number, by what they have before it.

        Those stay that are part of another name, as the positions are of what is gathered there: ``x_s_2`` is ``x`` at ``s_2``.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for name in names:
            if name not in self._fixed and _NUMBERED.fullmatch(name):
                found[name.rpartition("_")[0]].append(name)
        inner = {kind for own in found.values() for name in own for kind in _kinds_within(name)}
        return {kind: own for kind, own in found.items() if kind not in inner}


def _kinds_within(name: str) -> Iterator[str]:
    """What may stand before a number within ``name``, but at its begin."""
    words = name.split("_")
    for begin in range(1, len(words)):
        for end in range(begin + 1, len(words)):
            yield "_".join(words[begin:end])


def _repeated(sources: Sequence[Node], text: Callable[[Node], str]) -> list[Node]:
    """The long values that several nodes below ``sources`` are made of, and that are none of these; what loops repeat is theirs."""
    nodes = nodes_below(*sources)
    looped = {n for each in nodes if isinstance(each, Each) for n in nodes_below(each.element)}
    once: set[Node] = set(looped)
    again: dict[Node, None] = {}
    for node in nodes:
        if node not in looped:
            again.update(dict.fromkeys([o for o in node.operands if o in once]))
            once.update(node.operands)
    named = frozenset(sources)
    again = {n: None for n in again if n not in named and n not in looped}
    return [n for n in again if _is_value(n) and len(text(n)) > SHORT]


def _with_names(part: Sequence[Statement]) -> list[Statement]:
    """``part`` with the names that values have in each scope, wherever they are part of another one there."""
    scopes: dict[str, list[Statement]] = defaultdict(list)
    for s in part:
        scopes[s.scope].append(s)
    made = {scope: _in_one_scope(own) for scope, own in scopes.items() if len(own) > 1}
    return [_of(s, made[s.scope][s.source]) if s.scope in made else s for s in part]


def _in_one_scope(statements: Sequence[Statement]) -> dict[Node, Node]:
    """The source of each of ``statements``, written with the names of all others."""
    names = {s.source: s.target for s in reversed(statements) if _is_value(s.source)}
    nodes = nodes_below(*[s.source for s in statements])
    if names.keys().isdisjoint([operand for node in nodes for operand in node.operands]):
        return {s.source: s.source for s in statements}
    made: dict[Node, Node] = {}
    within: dict[Node, Node] = {}  # what stands for a node in another one
    for node in nodes:
        own = made[node] = rebuilt(node, within)
        within[node] = Name(names[own], own.shape, own.kind) if own in names else own
    return made


def _renamed(part: Sequence[Statement], new: Mapping[str, str]) -> list[Statement]:
    """``part`` with ``new`` names for old ones, as targets too."""
    new = {old: name for old, name in new.items() if old != name}
    if not new:
        return list(part)
    made: dict[Node, Node] = {}
    for node in nodes_below(*[s.source for s in part]):
        if isinstance(node, Name) and node.identifier in new:
            made[node] = Name(new[node.identifier], node.extents, node.own_kind)
        else:
            made[node] = rebuilt(node, made)
    return [
        s
        if made[s.source] is s.source and s.target not in new
        else replace(s, source=made[s.source], target=new.get(s.target, s.target))
        for s in part
    ]


def _of(statement: Statement, source: Node) -> Statement:
    return statement if source is statement.source else replace(statement, source=source)


def _one_after_the_other(first: Mapping[str, str], then: Mapping[str, str]) -> dict[str, str]:
    return dict(then) | {old: then.get(new, new) for old, new in first.items()}


def _number(name: str) -> int:
    return int(name.rpartition("_")[2])


def _read(source: Node) -> Iterator[str]:
    """The names that ``source`` reads."""
    return (node.identifier for node in nodes_below(source) if isinstance(node, Name))


def _is_value(source: Node) -> bool:
    """Whether ``source`` is one array that takes more to write than a name: no leaf or view of one, and nothing of the user's functions."""
    while isinstance(source, View):
        source = source.array
    return bool(source.operands) and not source.is_tuple and not isinstance(source, (Call, Output))

"""Choices by data of which each branch writes an element: what it held before is nobody's concern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jaxte.frontends.loops.program import Statement
from jaxte.lang.expr import Read

Branch = tuple[tuple[int, bool], ...]


def overwritten(
    statements: Sequence[Statement], reads: Mapping[tuple[Statement, Read], Iterable[Statement]]
) -> set[Statement]:
    """The first statement of each such choice, which may write anything where its branch is not taken; ``reads`` says which statements each read sees.

    Those of one choice write the same element at the same iterations, and their branches cover it. Who reads the element within a branch reads what that
    has written, or the first statement is left as it is.
    """
    groups: dict[object, list[Statement]] = {}
    for own in statements:
        branch = _branch(own)
        if own.keeps is not None and branch:
            target = own.variable, tuple(map(id, own.indices)), own.counters, tuple(map(id, own.conditions))
            groups.setdefault((*target, branch[0][0]), []).append(own)
    found = set()
    for group in groups.values():
        if len(group) > 1 and _covers((), {_branch(s) for s in group}) and _is_unseen(group, reads):
            found.add(group[0])
    return found


def _branch(statement: Statement) -> Branch:
    """The choices around a statement within which its variable does not live."""
    return statement.branch[statement.variable.home :]


def _covers(within: Branch, branches: set[Branch]) -> bool:
    """Whether one of ``branches`` is taken wherever ``within`` is."""
    if within in branches:
        return True
    depth = len(within)
    numbers = {b[depth][0] for b in branches if len(b) > depth and b[:depth] == within}
    return any(all(_covers((*within, (n, b)), branches) for b in (True, False)) for n in numbers)


def _is_unseen(
    group: Sequence[Statement], reads: Mapping[tuple[Statement, Read], Iterable[Statement]]
) -> bool:
    """Whether each read that sees a statement before the last one is what another of them keeps, or is in a branch that has written the element."""
    early = set(group[:-1])
    for (reader, read), sources in reads.items():
        if (reader in group and reader.only_keeps(read)) or early.isdisjoint(sources):
            continue
        before = [s for s in group if s.number < reader.number]
        if not any(reader.branch[: len(s.branch)] == s.branch for s in before):
            return False
    return True

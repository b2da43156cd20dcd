"""Additions right behind the write of the same element, as part of what is written: ``u[i] = a`` and ``u[i] += b`` is ``u[i] = a + b``.

An addition by itself has no tensor: who reads the element sees what was written and all that was added since. Where the write is one statement before, that sum
would stand in each of them, and the statement that writes the whole of an array in each iteration would be none.
"""

from __future__ import annotations

from dataclasses import replace

from jaxte.frontends.loops.program import Program, Statement
from jaxte.frontends.loops.recorder import FOLDS
from jaxte.lang.expr import Read
from jaxte.lang.identity import identical
from jaxte.lang.walk import reads_of


def joined(program: Program) -> Program:
    """``program`` with such additions within the statement before; regions are told by numbers of statements, and stay."""
    if program.regions:
        return program
    found: list[Statement] = []
    for statement in program.statements:
        if found and _continues(statement, found[-1]):
            found[-1] = _both(found[-1], statement)
        else:
            found.append(statement)
    if len(found) == len(program.statements):
        return program
    return replace(program, statements=tuple(replace(s, number=n) for n, s in enumerate(found)))


def _continues(statement: Statement, before: Statement) -> bool:
    """Whether ``statement`` adds to the element that ``before`` writes, in the same iteration and with nothing between them."""
    if statement.op is None or before.op is not None or statement.part is None:
        return False
    if statement.branch or before.branch or before.keeps is not None:
        return False
    same = (statement.counters, statement.conditions, statement.indices)
    if statement.variable is not before.variable or len(statement.counters) != len(before.counters):
        return False
    if not identical(same, (before.counters, before.conditions, before.indices)):
        return False
    *around, place = statement.places
    *around_before, place_before = before.places
    return (
        around == around_before
        and place == place_before + 1
        and not any(r.tensor is statement.variable.cell for r in reads_of(statement.part))
    )


def _both(before: Statement, addition: Statement) -> Statement:
    assert addition.op is not None
    guards = {read: tuple(given) for read, given in before.guards.items()}
    own = Read(addition.variable.cell, addition.indices)
    for read, given in addition.guards.items():
        if read is not own:
            guards[read] = (*guards.get(read, ()), *given)
    spans = {**addition.spans, **before.spans}
    whole = FOLDS[addition.op](before.whole, addition.part)
    return replace(before, whole=whole, guards=guards, spans=spans, places=addition.places)

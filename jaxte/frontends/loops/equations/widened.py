"""Statements that write most of an array in each iteration of an outer loop, as ones that write all of it: the others keep what they hold.

A sweep of a stencil over the inside of an array is such a statement. Of the array that it writes, each iteration then leaves a whole, which the next
one begins with: no read is a choice between the inside and an edge that never changes.
"""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Mapping
from dataclasses import replace

from jaxte.frontends.loops.program import Cell, Counter, Program, Statement
from jaxte.lang.expr import TRUE, Axis, Const, Expr, Read, as_expr, conjunction
from jaxte.lang.functions import logical_not, select
from jaxte.lang.limits import HALVED
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import linear_or_none


def widened(program: Program) -> Program:
    """``program`` with each such statement over the whole array that it writes."""
    around = Counted(c for s in program.statements for c in s.counters)
    changed = tuple(_wide(s, around, program) or s for s in program.statements)
    return replace(program, statements=changed)


def _wide(statement: Statement, around: Mapping[Counter, int], program: Program) -> Statement | None:
    """``statement`` over all elements of its variable; None where it is left as it is."""
    if statement.keeps is not None or statement.branch or not _is_read_by_others(statement, program):
        return None
    places = _places(statement)
    if places is None or any(around[c] > 1 for c in places.values()):
        return None
    own = Read(statement.variable.cell, statement.indices)
    reads = [r for r in reads_of(statement.whole) if r.tensor is own.tensor]
    if any(r is not own for r in reads):
        return None
    return _over_all(statement, places, _is_filled(statement, program))


def _is_filled(statement: Statement, program: Program) -> bool:
    """Whether the variable holds something everywhere: it is an argument, or a statement before gives all of it one value."""
    own = statement.variable
    return own.initial is not None or any(
        other.variable is own
        and other.op is None
        and not other.conditions
        and len(other.counters) == len(own.shape)
        and all(c.axis.extent is as_expr(e) for c, e in zip(other.counters, own.shape, strict=True))
        for other in program.statements[: statement.number]
    )


def _is_read_by_others(statement: Statement, program: Program) -> bool:
    """Whether another statement of the same outermost loop reads the variable, so that it is no mere sum."""
    return any(
        other is not statement
        and other.counters
        and other.counters[0] is statement.counters[0]
        and any(r.tensor is statement.variable.cell for r in reads_of(other.whole))
        for other in program.statements
        if statement.counters
    )


def _places(statement: Statement) -> dict[int, Counter] | None:
    """Which of the innermost counters stands at which index, where most elements are written, the same in each iteration of the loops around."""
    found: dict[int, Counter] = {}
    written = every = 1
    for place, index in enumerate(statement.indices):
        extent, form = as_expr(statement.variable.shape[place]), linear_or_none(index)
        if form is None or reads_of(index) or not isinstance(extent, Const):
            return None
        axes = free_axes(index)
        counters = [c for c in statement.counters if c.axis in axes]
        if len(counters) != 1 or abs(form.coefficient(counters[0].axis)) != 1:
            return None
        (counter,) = counters
        size = counter.axis.extent
        if counter in found.values() or not isinstance(size, Const) or counter.condition is not TRUE:
            return None
        count, most = int(size.value), int(extent.value)  # type: ignore[arg-type]
        ends = [form.constant, form.constant + form.coefficient(counter.axis) * (count - 1)]
        if min(ends) < 0 or max(ends) >= most:
            return None
        found[place] = counter
        written, every = written * count, every * most
    outer = len(statement.counters) - len(found)
    if (
        not found
        or not outer
        or set(statement.counters[outer:]) != set(found.values())
        or statement.conditions
    ):
        return None
    # A statement has to write that much of the array.
    return found if HALVED * written >= every > written else None


def _over_all(statement: Statement, places: Mapping[int, Counter], filled: bool) -> Statement:
    table: dict[Expr, Expr] = {}
    inside: list[Expr] = []
    axes: dict[int, Axis] = {}
    counters: dict[Counter, Counter] = {}
    for place, counter in places.items():
        axis = axes[place] = Axis(counter.name, 0, as_expr(statement.variable.shape[place]))
        form = linear(statement.indices[place])
        old = table[counter.axis] = normal((axis - form.constant) * form.coefficient(counter.axis))
        inside += [old >= 0, old < counter.axis.extent]
        counters[counter] = Counter(counter.name, axis, normal(substitute(counter.value, table)), TRUE)
    within = conjunction(inside)
    own = Read(statement.variable.cell, [axes[n] for n in range(len(axes))])
    whole = select(within, substitute(statement.whole, table), own)
    guards: dict[Read, tuple[tuple[Expr, ...], ...]] = {own: ((() if filled else (logical_not(within),)),)}
    spans = {own: statement.span}
    for read in reads_of(statement.whole):
        if isinstance(read.tensor, Cell):
            new = Read(read.tensor, [substitute(i, table) for i in read.indices])
            given = statement.guards.get(read, ((),))
            guards[new] = (
                *guards.get(new, ()),
                *((within, *(substitute(g, table) for g in gs)) for gs in given),
            )
            spans[new] = statement.spans.get(read, statement.span)
    return replace(
        statement,
        counters=tuple(counters.get(c, c) for c in statement.counters),
        indices=own.indices,
        whole=as_expr(whole),
        guards=guards,
        spans=spans,
        op=None,
        part=None,
    )

"""What each step of a loop would take anew and need not: a slice at fixed positions of an array from before the loop, as ``W[2]``, that a product reads.

A product reads its operands from memory, one after the other, so that XLA copies such a slice, in every step, and does not do so before the loop by itself: a step
of four gates takes twice the time. What is elementwise reads a slice in place, and is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from jaxte.lang.expr import Const
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.steps import Entry, Index, Range
from jaxte.lower.arrays.views import View
from jaxte.lower.code.lines import Names
from jaxte.lower.code.vocabulary import AnyStatement, Function, Statement


def taken_before(
    lines: Sequence[AnyStatement], outside: Collection[str], names: Names
) -> tuple[list[Statement], list[AnyStatement]]:
    """The statements that take such slices before a loop, and those of a step that read them.

    Args:
        lines: what a step consists of.
        outside: identifiers of the arrays that exist before the loop.
        names: those that are free.
    """
    known = [s for s in lines if isinstance(s, Statement) and _is_fixed(s.source, outside)]
    found = {s.source: s for s in known}
    table: dict[Node, Node] = {}
    for node in nodes_below(*_sources(lines)):
        for factor in node.factors if isinstance(node, Einsum) else ():
            if factor in table or not isinstance(factor, View) or not _is_fixed(factor, outside):
                continue
            assert isinstance(factor.array, Name)
            if factor not in found:
                target = names.new(factor.array.identifier)
                found[factor] = Statement(lines[0].scope, target, factor)
            table[factor] = Name(found[factor].target, factor.shape, factor.kind)
    moved = [found[f] for f in table]
    left = [_reading(s, table) for s in lines if s not in moved]
    return moved, left


def _is_fixed(node: Node, outside: Collection[str]) -> bool:
    """Whether ``node`` is a part of an array from before the loop, at positions that are numbers."""
    if not isinstance(node, View) or not isinstance(node.array, Name) or not isinstance(node.step, Index):
        return False
    return node.array.identifier in outside and all(map(_is_number, node.step.entries))


def _is_number(entry: Entry) -> bool:
    ends = (entry.start, entry.stop) if isinstance(entry, Range) else (entry,)
    return all(end is None or isinstance(end, Const) for end in ends)


def _sources(lines: Iterable[AnyStatement]) -> Iterable[Node]:
    """What the statements compute, those of functions among them included."""
    for statement in lines:
        if isinstance(statement, Statement):
            yield statement.source
        elif isinstance(statement, Function):
            yield from _sources(statement.statements)
            yield statement.result


def _reading(statement: AnyStatement, table: dict[Node, Node]) -> AnyStatement:
    """``statement`` with names in place of the slices of ``table``."""
    if isinstance(statement, Statement):
        return replace(statement, source=replaced(statement.source, table))
    if isinstance(statement, Function):
        own = tuple(_reading(s, table) for s in statement.statements)
        return replace(statement, statements=own, result=replaced(statement.result, table))
    return statement

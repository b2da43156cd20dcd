"""Rows that are gathered in two modes are gathered once.

A read that a guard keeps in range may be clipped, which is the fastest; another read of the same rows, which may leave its tensor, gives
NaN there. Both are the second one, whichever tensor is lowered first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.lower.arrays.data import CLIP, FILL, Gather
from jaxte.lower.arrays.leaves import Name
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.code.vocabulary import AnyStatement, Statement


def with_one_gather(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``statements`` in which clipped rows are read as those are that are gathered in whole."""
    own = [s.source for s in statements if isinstance(s, Statement)]
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

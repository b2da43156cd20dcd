"""Elements from another position on, and around the end: two slices side by side, or a choice between two pads.

XLA for GPUs makes an array of slices side by side and fuses little with it, so that a stencil on a ring takes a kernel for each of its
neighbours. A pad is computed in what reads it, and so is the choice: heat in a medium takes 6 kernels for 18, where JAX's derivative takes 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.node import Node, nodes_below, rebuilt
from jaxte.lower.arrays.steps import Roll
from jaxte.lower.arrays.views import View
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.sets.intervals import known


def with_rolls_chosen(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """``statements`` whose rolls are choices between two pads."""
    return [_with_choices(own) if isinstance(own, Statement) else own for own in statements]


def _with_choices(statement: Statement) -> Statement:
    nodes = nodes_below(statement.source)
    if not any(isinstance(node, Apply) for node in nodes):
        return statement  # a copy in another order, which a choice would read twice
    table: dict[Node, Node] = {}
    for node in nodes:
        own = rebuilt(node, table)
        if isinstance(own, View) and isinstance(own.step, Roll) and None not in map(known, own.shape):
            own = View(own.array, replace(own.step, by_choice=True))
        if own is not node:
            table[node] = own
    return replace(statement, source=table[statement.source]) if statement.source in table else statement

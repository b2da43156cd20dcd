"""An array of which an extremum is taken where a condition holds, and which a choice by the same condition reads, is masked once.

    m = jnp.max(jnp.where(c, s, -jnp.inf), axis=1)        s_masked = jnp.where(c, s, -jnp.inf)
    w = jnp.where(c, jnp.exp(s - m[:, None]), 0.0)        m = jnp.max(s_masked, axis=1);  w = jnp.where(c, jnp.exp(s_masked - m[:, None]), 0.0)

Where the condition holds the two arrays are the same, and elsewhere neither is chosen. Attention with a mask had its scores in memory twice, masked for the
maximum and as they are for the exponential; XLA on the CPU has one loop for both of one array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxte.lang.operators import SELECT
from jaxte.lower.arrays.elementwise import Apply, Cast, Name, Number
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.code.lines import Names
from jaxte.lower.code.vocabulary import AnyStatement, Statement


def with_masked_once(statements: Sequence[AnyStatement], names: Names) -> list[AnyStatement]:
    """``statements`` in which choices read the arrays that extrema before them read, masked by the same conditions."""
    named: dict[Apply, Name] = {}
    found: list[AnyStatement] = []
    for n, s in enumerate(statements):
        if isinstance(s, Statement):
            for own, array in _reduced(s.source):
                if own not in named and any(_choices(own, later) for later in statements[n + 1 :]):
                    target = names.new(f"{array.identifier}_masked")
                    found.append(Statement(s.scope, target, own))
                    named[own] = Name(target, own.shape, own.kind)
            for masked in named:
                s = replace(s, source=_reading(s, masked, named[masked]))
        found.append(s)
    return found


def _reduced(source: Node) -> Iterator[tuple[Apply, Name]]:
    """The arrays with names of which ``source`` takes extrema where a condition holds, as it reads them."""
    for node in nodes_below(source) if Reduced in source.kinds else ():
        if isinstance(node, Reduced) and node.function in ("max", "min"):
            match node.array:
                case Apply(op, (_, Name() as array, Number())) as own if op is SELECT:
                    yield own, array


def _choices(own: Apply, statement: AnyStatement) -> list[Apply]:
    """The choices of ``statement`` by the condition of ``own`` that read the array that this masks, each at its place."""
    if not isinstance(statement, Statement):
        return []
    test, array, _ = own.args
    choices = [
        n for n in nodes_below(statement.source) if isinstance(n, Apply) and n.op is SELECT and n is not own
    ]
    return [n for n in choices if n.args[0] is test and _reads(n.args[1], array)]


def _reads(node: Node, array: Node) -> bool:
    """Whether an element of ``node`` is made of the one of ``array`` at its place."""
    return node is array or (isinstance(node, (Apply, Cast)) and any(_reads(o, array) for o in node.operands))


def _reading(statement: Statement, own: Apply, masked: Name) -> Node:
    """The source of ``statement`` with ``masked`` in place of ``own``, and of the array that this masks where the same condition chooses."""
    table: dict[Node, Node] = {own: masked}
    for node in _choices(own, statement):
        test, taken, other = node.args
        table[node] = Apply(SELECT, (test, _with(taken, own.args[1], masked), other))
    return replaced(statement.source, table)


def _with(node: Node, array: Node, masked: Name) -> Node:
    if node is array:
        return masked
    if not isinstance(node, (Apply, Cast)):
        return node
    return replaced(node, {o: _with(o, array, masked) for o in node.operands})

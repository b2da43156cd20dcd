"""What several reductions have in common is written to memory by XLA on the CPU, those of the forward and the backward pass included.

Both are compiled together where values and gradients are asked for, and equal arrays are computed once: so each pass alone would hold nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from jaxte.lower.arrays.counts import bytes_of
from jaxte.lower.arrays.leaves import Name
from jaxte.lower.arrays.node import ArrayError, Node, nodes_below, replaced
from jaxte.lower.arrays.reductions import Combined, Reduced
from jaxte.lower.code.vocabulary import SMALL, Choice, Program, Statement
from jaxte.lower.cost.platforms import Platform
from jaxte.lower.program.laid_out import operands_of
from jaxte.tensors.tensor import Tensor

APART = (
    'te.function(..., save="nothing"): what two reductions have in common is written to memory, and so the backward pass has nothing in '
    "common with the forward pass"
)


def with_shared(program: Program, beside: Program, facts: Platform) -> Program:
    """``program``, whose verdicts count what it reduces in common with ``beside``, a program in the same computation."""
    own = [(scope, node) for scope, node in _reduced(program) if _size(node) > SMALL]
    if not own or not facts.lays_out_sums:
        return program
    written = _written_out(beside, {})
    both = {t: written[name] for name, t in beside.params}
    both |= {
        t: written[name] for name, t in zip(beside.results, beside.tensors, strict=True) if name in written
    }
    others = {_whole(node, written) for _, node in _reduced(beside) if _size(node) > SMALL}
    names = _written_out(program, both) if others else {}
    held: Counter[str] = Counter()
    for scope, node in own:
        if _whole(node, names) in others:
            held[scope] += _size(node)
    return replace(
        program, choices=tuple(_holding(choice, held[choice.target]) for choice in program.choices)
    )


def _reduced(program: Program) -> Iterator[tuple[str, Node]]:
    """The arrays that ``program`` reduces, outside of loops, each with the scope that it stands in."""
    for statement in program.statements:
        if isinstance(statement, Statement):
            for node in nodes_below(statement.source):
                if isinstance(node, (Reduced, Combined)):
                    yield from ((statement.scope, operand) for operand in operands_of(node))


def _size(node: Node) -> int:
    """The bytes of ``node``, where it is computed here; 0 where it exists anyway, or is part of a loop's text, whose shape is not known."""
    try:
        return 0 if isinstance(node, Name) else bytes_of(node)
    except ArrayError:
        return 0


def _written_out(program: Program, known: Mapping[Tensor, Node]) -> dict[str, Node]:
    """What each name of ``program`` stands for, down to its parameters, in place of which stand those of ``known``."""
    found = {name: known.get(t, Name(name)) for name, t in program.params}
    for statement in program.statements:
        if isinstance(statement, Statement):
            found[statement.target] = _whole(statement.source, found)
    return found


def _whole(root: Node, names: Mapping[str, Node]) -> Node:
    """``root`` without the names that statements gave to its parts."""
    below = (node for node in nodes_below(root) if isinstance(node, Name) and node.identifier in names)
    return replaced(root, {node: names[node.identifier] for node in below})


def _holding(choice: Choice, held: int) -> Choice:
    """``choice``, whose tensor holds ``held`` bytes at least."""
    own = choice.verdict
    if own is None or own.held >= held:
        return choice
    more = replace(own, held=held)
    return replace(choice, verdict=replace(more, remedy=more.remedy or APART) if more.is_large else more)

"""What XLA writes to memory before it reduces it, on platforms that fuse not all of it into the reduction (``lays_out_sums``).

Sums, products and functions are fused into what reduces them. Comparisons and choices are not, nor are rows that are laid out one beside the
other and sheared, as overlapping reads are. What several reductions have in common is counted, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from jaxte.lang import dtypes
from jaxte.lang.limits import MOST_HELD
from jaxte.lang.operators import COMPARISONS, SELECT
from jaxte.lower.arrays.counts import bytes_of, elements
from jaxte.lower.arrays.elementwise import Apply, Cast, Name
from jaxte.lower.arrays.node import ArrayError, Node, nodes_below, replaced
from jaxte.lower.arrays.products import Combined, Reduced
from jaxte.lower.arrays.views import Broadcast, Flip, Index, Pad, Reshape, Tile, View
from jaxte.lower.code.choice import Choice
from jaxte.lower.code.vocabulary import AnyStatement, Program, Statement
from jaxte.lower.cost.platform import Platform
from jaxte.tensors.tensor import Tensor

_FUSED = (Apply, Cast, View, Broadcast, Flip)


def laid_out_bytes(statements: Sequence[AnyStatement]) -> int:
    """The bytes of all that the reductions of ``statements``, which make one tensor, have written to memory: XLA adds them up in one loop."""
    own = {s.target: s.source for s in statements if isinstance(s, Statement)}
    reducing = [source for source in own.values() if not source.kinds.isdisjoint((Reduced, Combined))]
    reduced = [n for n in nodes_below(*reducing) if isinstance(n, (Reduced, Combined))]
    return sum(max((_largest(o, own) for o in operands_of(node)), default=0) for node in reduced)


def operands_of(node: Reduced | Combined) -> tuple[Node, ...]:
    """What ``node`` reduces."""
    return (node.array,) if isinstance(node, Reduced) else node.arrays


def _largest(operand: Node, own: Mapping[str, Node]) -> int:
    """The largest array on the way to ``operand`` that is not fused into its reduction; names stand for what is in ``own``."""
    stack, seen, found = [operand], set[Node](), 0
    while stack:
        node = stack.pop()
        if isinstance(node, Name) and node.identifier in own:
            node = own[node.identifier]
        if node in seen or not isinstance(node, _FUSED):
            continue
        seen.add(node)
        if _is_laid_out(node):  # in one loop with all that it is made of
            found = max(found, _bytes(node, operand))
        else:
            stack += node.operands
    return found


def _bytes(node: Node, operand: Node) -> int:
    """The bytes of ``node`` in the dtype of ``operand``, to which it is converted in the same loop; 0 for a part of a loop's text without a shape."""
    try:
        return elements(node.shape) * dtypes.width(operand.dtype)
    except ArrayError:
        return 0


def _is_laid_out(node: Node) -> bool:
    match node:
        case Apply(op):
            return op is SELECT or op in COMPARISONS
        case View():
            return _is_sheared(node)
    return False


def _is_sheared(view: View) -> bool:
    """Whether ``view`` is of copies of a row, one after the other, as rows of another length."""
    kinds: list[type] = []
    node: Node = view
    while isinstance(node, View):
        kinds.append(type(node.step))
        node = node.array
    if Reshape not in kinds:
        return False
    before = kinds[kinds.index(Reshape) + 1 :]
    return Tile in before and any(kind in (Pad, Index) for kind in before[: before.index(Tile)])


APART = (
    'te.function(..., save="nothing"): what two reductions have in common is written to memory, and so the backward pass has nothing in '
    "common with the forward pass"
)


def with_shared(program: Program, beside: Program, facts: Platform) -> Program:
    """``program``, whose verdicts count what it reduces in common with ``beside``, a program in the same computation."""
    own = [(scope, node) for scope, node in _reduced(program) if _size(node) > MOST_HELD]
    if not own or not facts.lays_out_sums:
        return program
    written = _written_out(beside, {})
    both = {t: written[name] for name, t in beside.params}
    both |= {
        t: written[name] for name, t in zip(beside.results, beside.tensors, strict=True) if name in written
    }
    others = {_whole(node, written) for _, node in _reduced(beside) if _size(node) > MOST_HELD}
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

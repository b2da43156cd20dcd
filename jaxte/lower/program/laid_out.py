"""What XLA writes to memory before it reduces it, on platforms that fuse not all of it into the reduction (``lays_out_sums``).

Sums, products and functions are fused into what reduces them. Comparisons and choices are not, nor are rows that are laid out one beside the
other and sheared, as overlapping reads are. What several reductions have in common is counted by ``shared_reductions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxte.lang import dtypes
from jaxte.lang.operators import COMPARISONS, SELECT
from jaxte.lower.arrays.counts import elements
from jaxte.lower.arrays.elementwise import Apply, Cast
from jaxte.lower.arrays.leaves import Name
from jaxte.lower.arrays.node import ArrayError, Node, nodes_below
from jaxte.lower.arrays.reductions import Combined, Reduced
from jaxte.lower.arrays.steps import Index, Pad, Reshape, Tile
from jaxte.lower.arrays.views import Broadcast, Flip, View
from jaxte.lower.code.vocabulary import AnyStatement, Statement

_FUSED = (Apply, Cast, View, Broadcast, Flip)


def laid_out_bytes(statements: Sequence[AnyStatement]) -> int:
    """The bytes of all that the reductions of ``statements``, which make one tensor, have written to memory: XLA adds them up in one loop."""
    own = {s.target: s.source for s in statements if isinstance(s, Statement)}
    reduced = [n for n in nodes_below(*own.values()) if isinstance(n, (Reduced, Combined))]
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

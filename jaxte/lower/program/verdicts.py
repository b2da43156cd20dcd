"""What a tensor costs beside what it has to: points computed beside points that count, bytes held beside those of what is read and made.

The points computed are those of the largest loop that is emitted for it: the arrays of elementwise code, and all letters of an einsum. The
points that count are those of the definition at which its conditions hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.errors import TooLargeError
from jaxte.lang.expr import Expr, Read, Reduce, as_expr, conjuncts
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, postorder, reads_of
from jaxte.lower.arrays.data import Gather
from jaxte.lower.arrays.elementwise import Apply, Kept
from jaxte.lower.arrays.loops import Joined, Stacked
from jaxte.lower.arrays.node import ArrayError, Node, known, nodes_below
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.reductions import Combined, Reduced
from jaxte.lower.code.vocabulary import AnyStatement, Estimate, Statement, Verdict
from jaxte.meaning.cost import told_by_data
from jaxte.planning.density import share
from jaxte.planning.terms import extent
from jaxte.tensors.tensor import Compute

MOST_BYTES = 10**11  # no machine is asked for more
_MADE = (Einsum, Joined, Stacked, Gather, Kept)  # arrays that XLA lays out


def verdict_of(tensor: Compute, statements: Sequence[AnyStatement], estimates: Iterable[Estimate]) -> Verdict:
    """What ``statements``, which make ``tensor``, compute and hold.

    Raises:
        TooLargeError: an array of more than 100 GB.
    """
    nodes = list(nodes_below(*(s.source for s in statements if isinstance(s, Statement))))
    computed = max((_points(node) for node in nodes), default=0)
    own = _bytes(map(as_expr, tensor.shape), tensor.dtype)
    held = max((_held(node) for node in nodes), default=0)
    held = max(held, *(int(e.temporaries) for e in estimates if e.chosen), 0)
    needed = own + sum(_bytes(map(as_expr, t.shape), t.dtype) for t in tensor.inputs)
    if max(own, held) > MOST_BYTES:
        raise TooLargeError(
            f"{tensor.name} needs an array of {max(own, held):,} bytes, where {needed:,} are read and made; give it fewer axes at a "
            "time, as a tensor of its own for each, or a budget: te.function(..., max_memory=2**30) computes in tiles what can be"
        )
    return Verdict(tensor.name, computed, max(_counting(tensor), 1), held, needed, _cause(tensor))


def _points(node: Node) -> int:
    try:
        if isinstance(node, Einsum) and len(node.factors) <= 2:
            letters = node.spec.partition("->")[0].split(",")
            sizes = dict(
                pair
                for own, f in zip(letters, node.factors, strict=True)
                for pair in zip(own, f.shape, strict=True)
            )
            return _size(sizes.values())
        if isinstance(node, (Apply, Gather)):
            return _size(node.shape)
        if isinstance(node, Reduced):
            return _size(node.array.shape)
        if isinstance(node, Combined):
            return _size(node.arrays[0].shape)
    except ArrayError:
        pass  # the text of a form, whose shape is not known here
    return 0


def _held(node: Node) -> int:
    """The bytes of what an einsum multiplies, and of arrays put together or gathered."""
    made: list[Node] = [f for f in node.factors if isinstance(f, Apply)] if isinstance(node, Einsum) else []
    made += [node] if isinstance(node, _MADE) else []
    try:
        return max((_bytes(n.shape, n.dtype) for n in made), default=0)
    except ArrayError:
        return 0


def _size(extents: Iterable[Expr]) -> int:
    """The product of ``extents``; symbolic ones count as 1, so that nothing is claimed of them."""
    return prod(known(e) or 1 for e in extents)


def _bytes(extents: Iterable[Expr], dtype: str) -> int:
    return _size(extents) * dtypes.width(dtype)


def _counting(tensor: Compute) -> int:
    """The points of the definition at which conditions hold; nested sums are counted with the one around them."""
    elements = prod(map(extent, tensor.axes))
    total = elements
    for node in postorder(tensor.body):
        if isinstance(node, Reduce):
            outer = [a for a in free_axes(node) if a in set(tensor.axes)]
            box = prod(map(extent, (*outer, *node.axes)))
            told = prod(map(extent, told_by_data(node, tensor.axes)))
            total += int(box / max(told, 1) * share(conjuncts(node.where)))
    return total


def _cause(tensor: Compute) -> str:
    """The condition or the read that makes points which do not count."""
    for node in postorder(tensor.body):
        if isinstance(node, Reduce):
            for condition in conjuncts(node.where):
                if reads_of(condition) or len(free_axes(condition)) > 1:
                    return f"where {text(condition)}"
    for node in postorder(tensor.body):
        if isinstance(node, Read) and any("%" in text(i) or "//" in text(i) for i in node.indices):
            return text(node)
    return ""

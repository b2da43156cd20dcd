"""What a tensor costs beside what it has to: points computed beside points that count, bytes held beside those of what is read and made.

The points computed are those of the largest loop that is emitted for it: the arrays of elementwise code, and all letters of an einsum. The
points that count are those of the definition at which its conditions hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.errors import TooLargeError
from jaxte.lang.expr import Read, Reduce, as_expr, conjuncts
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes, postorder, reads_of
from jaxte.lower.arrays.counts import elements, held_bytes, points
from jaxte.lower.arrays.data import Gather
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.node import ArrayError, Node, nodes_below
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.arrays.reductions import Combined, Reduced
from jaxte.lower.code.vocabulary import AnyStatement, Estimate, Statement, Verdict
from jaxte.meaning.cost import told_by_data
from jaxte.planning.density import share
from jaxte.planning.terms import extent
from jaxte.tensors.tensor import Compute, Tensor

MOST_BYTES = 10**11  # no machine is asked for more
_LOOPS = (Apply, Gather, Einsum, Reduced, Combined)


def verdict_of(tensor: Compute, statements: Sequence[AnyStatement], estimates: Iterable[Estimate]) -> Verdict:
    """What ``statements``, which make ``tensor``, compute and hold.

    Raises:
        TooLargeError: an array of more than 100 GB.
    """
    nodes = list(nodes_below(*(s.source for s in statements if isinstance(s, Statement))))
    computed = max(map(_computed, nodes), default=0)
    own = _bytes(tensor)
    held = max((_known(held_bytes, node) for node in nodes), default=0)
    held = max(held, *(int(e.temporaries) for e in estimates if e.chosen), 0)
    needed = own + sum(map(_bytes, tensor.inputs))
    if max(own, held) > MOST_BYTES:
        raise TooLargeError(
            f"{tensor.name} needs an array of {max(own, held):,} bytes, where {needed:,} are read and made; give it fewer axes at a "
            "time, as a tensor of its own for each, or a budget: te.function(..., max_memory=2**30) computes in tiles what can be"
        )
    return Verdict(tensor.name, computed, max(_counting(tensor), 1), held, needed, _cause(tensor))


def _computed(node: Node) -> int:
    """The points of the loop that ``node`` is, if it is one: a product of several is taken apart by ``jnp.einsum``."""
    if not isinstance(node, _LOOPS) or (isinstance(node, Einsum) and len(node.factors) > 2):
        return 0
    return _known(points, node)


def _known(count: Callable[[Node], int], node: Node) -> int:
    """A count of ``node``; 0 where it is part of a loop's text, whose shape is not known here."""
    try:
        return count(node)
    except ArrayError:
        return 0


def _bytes(tensor: Tensor) -> int:
    return elements(map(as_expr, tensor.shape)) * dtypes.width(tensor.dtype)


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

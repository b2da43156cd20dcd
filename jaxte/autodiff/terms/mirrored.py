"""Functions of an element and a neighbour that are the same seen from the neighbour: an adjoint has them anyway.

The weight ``exp(-(x[i + 1] - x[i])**2)`` of the edge from ``i`` is needed where its slope flows back to ``x[i]`` and, at ``i - 1``, where it flows back to
``x[i + 1]``. If the body has the edge to ``x[i - 1]`` as well, the latter is the weight of that edge from ``i``: solved for one element, each weight
stands there once, and nothing is gained by a tensor of weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.even_functions import with_even_functions
from jaxte.algebra.operations import operands, value_nodes
from jaxte.lang.expr import Call, Expr, Read
from jaxte.lang.walk import reads_of, substitute
from jaxte.sets.piecewise_affine import Neighbour, neighbour

Places = tuple[Neighbour, ...]


def mirrored(values: Sequence[Expr]) -> frozenset[Expr]:
    """The nodes below ``values`` that are functions of an element and of one of two opposite neighbours, and the same from both sides."""
    places = {read: own for read in reads_of(*values) if (own := _places(read)) is not None}
    there = {(read.tensor, own) for read, own in places.items()}
    both = {
        r
        for r, p in places.items()
        if any(n.distance for n in p) and (r.tensor, tuple(n.opposite for n in p)) in there
    }
    if not both:
        return frozenset()
    found: set[Expr] = set()
    below: dict[Expr, frozenset[Expr]] = {}
    for node in value_nodes(*values):
        of = [below[child] for child in operands(node)]
        below[node] = read = frozenset({node}) if isinstance(node, Read) else frozenset().union(*of)
        if (
            isinstance(node, Call)
            and len(read) == 2
            and len(read & both) == 1
            and _is_same_turned(node, read)
        ):
            found.add(node)
    return frozenset(found)


def _is_same_turned(node: Expr, reads: frozenset[Expr]) -> bool:
    """Whether ``node`` is the same function of its two reads, of one tensor, in the other order."""
    first, second = reads
    if not isinstance(first, Read) or not isinstance(second, Read) or first.tensor is not second.tensor:
        return False
    return with_even_functions(substitute(node, {first: second, second: first})) is with_even_functions(node)


def _places(read: Read) -> Places | None:
    """Which neighbour of its own position an element is, in each axis of the tensor; None where an index is something else."""
    found = [neighbour(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True)]
    return None if any(n is None for n in found) else tuple(n for n in found if n is not None)

"""What a tensor costs beside what it has to: points computed beside points that count, bytes held beside those of what is read and made.

The points computed are those of the largest loop that is emitted for it: the arrays of elementwise code, and all letters of an einsum. The
points that count are those of the definition at which its conditions hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.errors import TooLargeError
from jaxte.lang.expr import TRUE, Axis, Call, Expr, Reduce, as_expr, conjuncts
from jaxte.lang.limits import MOST_BYTES
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, reductions
from jaxte.lower.arrays.counts import at_least, elements, held_bytes
from jaxte.lower.arrays.counts import flops as node_flops
from jaxte.lower.arrays.data import Gather
from jaxte.lower.arrays.elementwise import Apply, Name, Number
from jaxte.lower.arrays.node import ArrayError, Node, nodes_below
from jaxte.lower.arrays.products import Combined, Einsum, Reduced
from jaxte.lower.arrays.views import View
from jaxte.lower.code.choice import Estimate, Verdict
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import is_expensive
from jaxte.lower.program.laid_out import laid_out_bytes
from jaxte.lower.program.remedies import IN_PARTS, IN_TILES, cause_and_remedy
from jaxte.lower.tiles.sizes import overlaps
from jaxte.lower.tiles.tiling import Tiles, loop_of
from jaxte.meaning.cost import told_by_data
from jaxte.meaning.points import share_together
from jaxte.sets.intervals import extent
from jaxte.tensors.tensor import Compute, Tensor

_FREE = (Name, Number, View)  # they take no loop and hold nothing


def verdict_of(
    tensor: Compute, statements: Sequence[AnyStatement], estimates: Iterable[Estimate], facts: Platform
) -> Verdict:
    """What ``statements``, which make ``tensor``, compute and hold on a platform.

    Raises:
        TooLargeError: an array of more than 100 GB.
    """
    made = nodes_below(*(s.source for s in statements if isinstance(s, Statement)))
    nodes = [node for node in made if not isinstance(node, _FREE)]
    loops = list(map(_loop, nodes))
    over = max(loops, key=prod, default=())
    own = _bytes(tensor)
    # those hold nothing, and their loops are their operations
    others = [node for node in nodes if not isinstance(node, Apply)]
    held = max([_known(held_bytes, node) for node in others], default=0)
    held = max(held, *(int(e.temporaries) for e in estimates if e.chosen), 0)
    laid_out = laid_out_bytes(statements) if facts.lays_out_sums else 0
    needed = own + sum(map(_bytes, tensor.inputs))
    if max(own, held) > MOST_BYTES:
        raise TooLargeError(
            f"{tensor.name} needs an array of {max(own, held):,} bytes, where {needed:,} are read and made; give it fewer axes at a "
            "time, as a tensor of its own for each, or a budget: te.function(..., max_memory=2**30) computes in tiles what can be"
        )
    counting, asked = _counting(tensor)
    flops = sum([_known(node_flops, node) for node in others])
    flops += sum([prod(own) for own, node in zip(loops, nodes, strict=True) if isinstance(node, Apply)])
    verdict = Verdict(
        tensor.name,
        over,
        max(counting, 1),
        flops,
        asked,
        max(held, laid_out),
        needed,
        plain=_held_by_jax(tensor),
    )
    if not (verdict.is_dense or verdict.is_large):
        return verdict
    cause, remedy = cause_and_remedy(tensor)
    return replace(verdict, cause=cause, remedy=remedy if verdict.is_dense else _smaller(tensor))


def _held_by_jax(tensor: Compute) -> int:
    """Bytes that the definition holds where it is computed from whole arrays, as in plain JAX.

    XLA on the CPU writes what is chosen before it reduces it, over all axes that it depends on. What is computed of one element alone is an
    array of that tensor's size; products and windows that are reduced are no arrays.
    """
    chosen = [n for n in reductions(tensor.body) if _is_choice(n)]
    pairs = [
        e for node in chosen for e in postorder(*node.exprs) if is_expensive(e) and len(set(reads_of(e))) > 1
    ]
    return max((prod(map(extent, free_axes(e))) * dtypes.width(e.dtype) for e in pairs), default=0)


def _is_choice(node: Reduce) -> bool:
    """Whether not all points of ``node`` count, or not all alike."""
    return node.where is not TRUE or any(
        isinstance(n, Call) and n.op is SELECT for n in postorder(*node.exprs)
    )


def _smaller(tensor: Compute) -> str:
    """How less is held on the way to ``tensor``: tiles are for what does not overlap."""
    return IN_PARTS if overlaps(tensor) else IN_TILES


def _loop(node: Node) -> tuple[int, ...]:
    """The extents of the loop that ``node`` is, if it is one: a product of several is taken apart by ``jnp.einsum``."""
    match node:
        case Einsum(spec, factors):
            letters = spec.partition("->")[0].split(",")
            pairs = (zip(own, f.shape, strict=True) for own, f in zip(letters, factors, strict=True))
            extents: Iterable[Expr] = dict(pair for own in pairs for pair in own).values()
            return () if len(factors) > 2 else tuple(map(at_least, extents))
        case Reduced(array=array):
            return tuple(map(at_least, _shape(array)))
        case Combined(arrays=arrays):
            return tuple(map(at_least, _shape(arrays[0])))
        case Apply() | Gather():
            return tuple(map(at_least, _shape(node)))
    return ()


def _shape(node: Node) -> Sequence[Expr]:
    """The shape of ``node``; none where it is part of a loop's text, whose shape is not known here."""
    try:
        return node.shape
    except ArrayError:
        return ()


def _known(count: Callable[[Node], float], node: Node) -> int:
    """A count of ``node``; 0 where it is part of a loop's text, whose shape is not known here."""
    try:
        return int(count(node))
    except ArrayError:
        return 0


def _bytes(tensor: Tensor) -> int:
    return elements(map(as_expr, tensor.shape)) * dtypes.width(tensor.dtype)


def _counting(tensor: Compute) -> tuple[int, int]:
    """The points of the definition at which conditions hold, and its operations there; nested sums are counted with the one around them."""
    total = prod(map(extent, tensor.axes))
    own = set(tensor.axes)
    shares: dict[Axis, float] = {}  # the part of the points of a reduction that count, by each of its axes
    operations = 0.0
    for node in reversed(postorder(tensor.body)):
        inside = prod({shares[a]: None for a in free_axes(node) if a in shares})
        if isinstance(node, Reduce):
            outer = [a for a in free_axes(node) if a in own]
            told = prod(map(extent, told_by_data(node, tensor.axes)))
            part = share_together(conjuncts(node.where)) / max(told, 1)
            points = prod(map(extent, (*outer, *node.axes))) * part
            shares |= dict.fromkeys(node.axes, part)
            total += int(points)
            operations += points
        elif isinstance(node, Call) and not node.weak:
            operations += prod(map(extent, free_axes(node))) * inside
    return total, max(int(operations), 1)


def verdict_in_tiles(tiles: Tiles) -> Verdict | None:
    """What a pass in tiles that makes one tensor computes, where that is many times what counts."""
    if len(tiles.wholes) != 1 or tiles.inside:
        return None
    (tensor,), over = tiles.wholes, loop_of(tiles)
    counting, asked = _counting(tensor)
    flops = asked * prod(over) // max(counting, 1)
    needed = _bytes(tensor) + sum(map(_bytes, tensor.inputs))
    verdict = Verdict(tensor.name, over, max(counting, 1), flops, asked, 0, needed)
    if not verdict.is_dense:
        return None
    cause, remedy = cause_and_remedy(tensor)
    return replace(verdict, cause=cause, remedy=remedy)

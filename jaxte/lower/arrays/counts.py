"""What nodes do and hold, counted from their shapes: operations, points of loops, bytes. Nothing else counts these.

How long it takes is for the rates of a platform to say (``lower.cost``), which multiply these counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import log2, prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Const, Expr
from jaxte.lang.graphs import reached
from jaxte.lower.arrays import data, elementwise, loops, products, views
from jaxte.lower.arrays.node import Node, nodes_below

Size = Callable[[Expr], int]
"""The number that an extent counts as, which may be symbolic."""


def at_least(extent: Expr) -> int:
    """Symbolic extents count as 1, so that nothing is claimed of them."""
    return (int(extent.value) if isinstance(extent, Const) else 0) or 1  # type: ignore[arg-type]


def elements(extents: Iterable[Expr], size: Size = at_least) -> int:
    return prod(map(size, extents))


def bytes_of(node: Node, size: Size = at_least) -> int:
    """The bytes of the array that ``node`` is."""
    return elements(node.shape, size) * dtypes.width(node.dtype)


def points(node: Node, size: Size = at_least) -> int:
    """The points of the loop that computes ``node``: all letters of a product, all that is reduced."""
    match node:
        case products.Einsum(spec, factors):
            letters = spec.partition("->")[0].split(",")
            pairs = (zip(own, f.shape, strict=True) for own, f in zip(letters, factors, strict=True))
            return elements(dict(pair for own in pairs for pair in own).values(), size)
        case products.Tensordot(lhs, rhs):
            return elements((*lhs.shape, *rhs.shape[1:]), size)
        case products.Convolution():
            return elements(node.shape, size) * elements(window(node).values(), size)
        case products.ReduceWindow():
            return elements(node.shape, size) * prod(node.sizes)
        case products.Reduced(array=array):
            return elements(array.shape, size)
        case products.Combined(arrays=arrays) | products.Prefixes(arrays=arrays):
            return elements(arrays[0].shape, size) * len(arrays)
        case data.Scatter(values=values):
            return elements(values.shape, size)
    return elements(node.shape, size)


def flops(node: Node, size: Size = at_least) -> float:
    """Operations on elements: two at each point of a product of two, one at each of other loops; of views none.

    Products with the zeros between elements that a convolution puts there are none.
    """
    match node:
        case products.Einsum(factors=factors):
            return float(max(1, 2 * (len(factors) - 1))) * points(node, size)
        case products.Tensordot():
            return 2.0 * points(node, size)
        case products.Convolution(lhs_dilation=spacing):
            return 2.0 * points(node, size) / prod(spacing)
        case products.Fourier(axes=axes):
            count = elements((node.shape[n] for n in axes), size)
            return 2.5 * log2(max(count, 2)) * elements(node.shape, size)
        case elementwise.Apply() | products.Cumulative() | products.Prefixes() | data.Scatter():
            return float(points(node, size))
        case products.Reduced() | products.Combined() | products.ReduceWindow():
            return float(points(node, size))
    return 0.0


def reordered(node: Node, size: Size = at_least) -> int:
    """The elements that are written once more because they stand in another order than what reads them needs.

    A product of matrices has what both factors share first, then what is one factor's own beside what is summed, and its result has
    them in this order. Dimensions of one element stand anywhere.
    """
    match node:
        case views.View(step=views.Transpose(order)):
            extents = [size(e) for e in node.shape]
            long = [n for n, extent in zip(order, extents, strict=True) if extent > 1]
            return 0 if long == sorted(long) else prod(extents)
        case products.Einsum(spec, (lhs, rhs)):
            inputs, _, out = spec.partition("->")
            first, second = inputs.split(",")
            pairs = zip(first + second, (*lhs.shape, *rhs.shape), strict=True)
            return _reordered(first, second, out, {letter: size(e) for letter, e in pairs})
    return 0


def _reordered(lhs: str, rhs: str, out: str, extents: dict[str, int]) -> int:
    """The same for the product of two factors, by their letters."""
    lhs, rhs, out = ("".join(c for c in own if extents[c] > 1) for own in (lhs, rhs, out))
    shared = "".join(c for c in lhs if c in rhs and c in out)
    summed = "".join(c for c in lhs if c in rhs and c not in out)
    own = ["".join(c for c in factor if c in out and c not in shared) for factor in (lhs, rhs)]

    def moved(letters: str, *orders: str) -> int:
        return 0 if letters in orders else prod(extents[c] for c in letters)

    factors = [
        moved(f, shared + o + summed, shared + summed + o) for f, o in zip((lhs, rhs), own, strict=True)
    ]
    return sum(factors) + moved(out, shared + "".join(own), shared + "".join(reversed(own)))


def window(node: products.Convolution) -> dict[str, Expr]:
    """What each element of a convolution meets: the kernel's extents by letter, but for its output features."""
    extents = zip(node.dimensions[1], node.rhs.shape, strict=True)
    return {letter: extent for letter, extent in extents if letter != "O"}


def features(node: products.Convolution) -> Expr:
    """The output features of a convolution."""
    return node.rhs.shape[node.dimensions[1].index("O")]


LAID_OUT = (products.Einsum, loops.Joined, loops.JoinedItems, loops.Stacked, data.Gather, elementwise.Kept)
"""Arrays that XLA writes to memory."""


def held_bytes(node: Node, size: Size = at_least) -> int:
    """The bytes that ``node`` needs in memory: of itself, if it is laid out, and of what an einsum multiplies."""
    made = [f for f in node.operands if isinstance(f, elementwise.Apply)]
    own = made if isinstance(node, products.Einsum) else []
    return max(
        (bytes_of(n, size) for n in (*own, *([node] if isinstance(node, LAID_OUT) else []))), default=0
    )


def in_turns(*roots: Node) -> Iterator[tuple[Node, int]]:
    """Every node below ``roots`` and how often it is computed: in each turn of the loops around it."""
    inside: dict[Node, int] = {}
    own = list(nodes_below(*roots))
    for node in own:
        if isinstance(node, loops.Each):
            for below in nodes_below(node.element):
                inside[below] = max(inside.get(below, 1), 1) * node.count
    outside = reached(
        roots, lambda node: node.operands[:-1] if isinstance(node, loops.Each) else node.operands
    )
    for node in own:
        yield node, 1 if node in outside else inside.get(node, 1)


def total_reordered(roots: Iterable[Node], size: Size = at_least) -> int:
    """The elements that are written once more in all that ``roots`` are made of."""
    return sum(reordered(node, size) * times for node, times in in_turns(*roots))


def total_flops(roots: Iterable[Node], size: Size = at_least, *kinds: type[Node]) -> float:
    """The operations of all that ``roots`` are made of; with ``kinds``, of nodes of these only."""
    counted = (node for node in in_turns(*roots) if not kinds or isinstance(node[0], kinds))
    return sum(flops(node, size) * times for node, times in counted)

"""Checks of array programs: names are bound, shapes and dtypes fit, static positions are inside.

What a node says of itself is what its operands say: the rules below ask what inference takes for granted. Extents that are made of
symbolic sizes are compared where both are known to be one, and left alone elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import singledispatch
from math import prod

from jaxte.lang.expr import Expr
from jaxte.lower.arrays import data, elementwise, loops, products, views
from jaxte.lower.arrays.node import ArrayError, Node, Shape, nodes_below
from jaxte.lower.arrays.views import Entry, Index, New, Pad, Range, Repeat, Reshape, Roll, Tile, Transpose
from jaxte.sets.intervals import known


def verify_node(root: Node, bound: Mapping[str, elementwise.Name | None]) -> None:
    """Checks ``root`` and all that it is made of.

    Args:
        root: what is computed.
        bound: the names that exist, with what they are where that is known.

    Raises:
        ArrayError: something has no meaning; the message says which node, and why.
    """
    loops_below = (node for node in nodes_below(root) if isinstance(node, loops.Each))
    local = {name.identifier for node in loops_below for name in _loop_names(node)}
    for node in nodes_below(root):
        if isinstance(node, elementwise.Name):
            _verify_name(node, bound, local)
            continue
        try:
            _verify(node)
            if not node.is_tuple:
                if any(e is None for e in node.shape) or not node.dtype:
                    raise ArrayError("it has no shape or no dtype")
        except ArrayError as error:
            raise ArrayError(f"{type(node).__name__}: {error}") from None


def _loop_names(node: loops.Each) -> list[elementwise.Name]:
    own = [own for own in node.loops if isinstance(own, loops.Parts)]
    return [name for parts in own for name in parts.names if isinstance(name, elementwise.Name)]


def _verify_name(
    node: elementwise.Name, bound: Mapping[str, elementwise.Name | None], local: Collection[str]
) -> None:
    if node.identifier in local or node.identifier == "None":
        return
    if node.identifier not in bound:
        raise ArrayError(f"{node.identifier} is read before it is assigned")
    own = bound[node.identifier]
    if own is None or own.extents is None or node.extents is None:
        return
    if not _may_be(own.extents, node.extents):
        raise ArrayError(f"{node.identifier} has the shape {own.extents}, and is read as {node.extents}")
    if own.own_kind[0] and node.own_kind[0] and own.own_kind[0] != node.own_kind[0]:
        raise ArrayError(f"{node.identifier} is {own.own_kind[0]}, and is read as {node.own_kind[0]}")


def _may_be(a: Shape, b: Shape) -> bool:
    """Whether two shapes may be one: numbers are, sizes may be whatever they are written as."""
    if len(a) != len(b):
        return False
    pairs = [(known(x), known(y)) for x, y in zip(a, b, strict=True)]
    return all(x is None or y is None or x == y for x, y in pairs)


@singledispatch
def _verify(node: Node) -> None:
    """What inference of shapes does not ask."""


@_verify.register
def _(node: views.View) -> None:
    shape, step = node.array.shape, node.step
    match step:
        case Index(entries):
            _verify_entries(entries, shape)
        case Pad(widths):
            if len(widths) != len(shape) or any((known(w) or 0) < 0 for pair in widths for w in pair):
                raise ArrayError(f"widths {widths} of an array of {len(shape)} dimensions")
        case Reshape(new):
            counts = [[known(e) for e in own] for own in (shape, new)]
            if any(n is None or n < 0 for own in counts for n in own):
                return
            if prod(n or 0 for n in counts[0]) != prod(n or 0 for n in counts[1]):
                raise ArrayError(f"{shape} has not as many elements as {new}")
        case Transpose(order):
            if sorted(order) != list(range(len(shape))):
                raise ArrayError(f"{order} is no order of {len(shape)} dimensions")
        case Roll(starts):
            if len(starts) != len(shape) or any(
                abs(s) >= (known(e) or abs(s) + 1) for s, e in zip(starts, shape, strict=True)
            ):
                raise ArrayError(f"positions {starts} of an array of {shape}")
        case Repeat(axis, _) | Tile(axis, _):
            if axis >= len(shape):
                raise ArrayError(f"dimension {axis} of {len(shape)}")


def _verify_entries(entries: tuple[Entry, ...], shape: Shape) -> None:
    taken = [e for e in entries if not isinstance(e, New)]
    if len(taken) > len(shape):
        raise ArrayError(f"{len(taken)} entries for {len(shape)} dimensions")
    for entry, extent in zip(taken, shape, strict=False):
        length = known(extent)
        if length is None:
            continue
        bounds = [entry.start, entry.stop] if isinstance(entry, Range) else [entry]
        numbers = [known(b) for b in bounds if isinstance(b, Expr)]
        inside = length if isinstance(entry, Range) else length - 1
        if any(n is not None and not -length <= n <= inside for n in numbers):
            raise ArrayError(f"the entry {entry} of a dimension of {length}")


@_verify.register
def _(node: views.Broadcast) -> None:
    own = (1,) * (len(node.extents) - len(node.array.shape)) + tuple(map(known, node.array.shape))
    for extent, wanted in zip(own, map(known, node.extents), strict=True):
        if extent not in (1, None) and wanted is not None and extent != wanted:
            raise ArrayError(f"{node.array.shape} is repeated to {node.extents}")


@_verify.register
def _(node: loops.Stacked) -> None:
    if not all(_may_be(p.shape, node.parts[0].shape) for p in node.parts):
        raise ArrayError(f"parts of shapes {[p.shape for p in node.parts]}")


@_verify.register
def _(node: loops.Joined) -> None:
    rests = [(*p.shape[: node.axis], *p.shape[node.axis + 1 :]) for p in node.parts]
    if not all(_may_be(rest, rests[0]) for rest in rests):
        raise ArrayError(f"parts of shapes {[p.shape for p in node.parts]} along {node.axis}")


@_verify.register
def _(node: data.Gather) -> None:
    if len(node.positions) > len(node.array.shape):
        raise ArrayError(f"{len(node.positions)} positions for {len(node.array.shape)} dimensions")


@_verify.register
def _(node: data.Scatter) -> None:
    met = data.Gather(node.array, node.positions).shape
    own = node.values.shape
    if len(own) > len(met) or not _may_be(own, met[len(met) - len(own) :]):
        if any(known(e) != 1 for e in own):
            raise ArrayError(f"values of {own} at positions of {met}")


@_verify.register
def _(node: data.Updated) -> None:
    for start, extent, own in zip(
        node.start, map(known, node.shape), map(known, node.part.shape), strict=True
    ):
        if extent is not None and own is not None and start + own > extent:
            raise ArrayError(f"a part of {node.part.shape} from {node.start} on leaves {node.shape}")


@_verify.register
def _(node: products.Reduced) -> None:
    ndim = len(node.array.shape)
    if any(not -ndim <= axis < ndim for axis in node.axes or ()):
        raise ArrayError(f"axes {node.axes} of {ndim} dimensions")

"""A pattern beside the shapes of its operands: letters without spaces, ``...`` and composed axes become names with sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from jaxte.frontends.text.tree import (
    Composed,
    Dots,
    Element,
    Name,
    Node,
    Number,
    Operation,
    Pattern,
    Reduction,
    Span,
    nodes_of,
)
from jaxte.lang.errors import ShapeError, nearest

Shapes = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class Resolved:
    """A pattern in which each operand has one index for each of its axes.

    Attributes:
        body: elements, functions and the reductions that are written out.
        result: axes, composed axes and ones.
        ranges: of the axes that stand in composed ones, and of those that a number is the size of.
    """

    body: Node
    result: tuple[Node, ...]
    ranges: Mapping[str, tuple[int, Any]]


def resolved(given: Pattern, shapes: Shapes, sizes: Mapping[str, Any]) -> Resolved:
    """``given`` for operands of ``shapes``, where ``sizes`` are those of axes."""
    keywords, sizes = sizes, dict(sizes)
    taken = {*sizes, *(n.name for n in nodes_of(given.body) if isinstance(n, Name))}
    written = [[_numbered(item, sizes, taken, False) for item in own.indices] for own in given.operands]
    result = None if given.result is None else [_numbered(item, sizes, taken, True) for item in given.result]
    if _is_letters(written, shapes):
        if result is None:
            result = _implied(written)
        written, result = [_letters(items) for items in written], _letters(result)
    if result is None:
        raise given.arrow.fault(
            "the axes of the result are missing; write them behind ->, as in i j, j k -> i k"
        )
    listed = [
        _with_dots(own, items, shape)
        for own, items, shape in zip(given.operands, written, shapes, strict=True)
    ]
    result = _result_dots(result, listed)
    known = _sizes(listed, shapes, sizes)
    composed = {
        n.name for items in (*listed, result) for c in items if isinstance(c, Composed) for n in _factors(c)
    }
    ranges = {name: (0, known[name]) for name in composed if name in known}
    dots = _dot_sizes(listed, shapes)
    table: dict[Node, Node] = {}
    for own, items, shape in zip(given.operands, listed, shapes, strict=True):
        indices = [_index(item, extent, dots) for item, extent in zip(items, shape, strict=True)]
        table[own] = replace(own, indices=tuple(indices))
    _check_keywords(given, listed, result, keywords)
    return Resolved(_replaced(given.body, table), tuple(result), ranges)


def _numbered(item: Node, sizes: dict[str, Any], taken: set[str], in_result: bool) -> Node:
    """``item`` with an axis for each number that is a size: ``(c 2)``, and ``2`` in the result, repeat; ``(c 2)`` of an operand is divided."""

    def named(node: Node) -> Node:
        if not (isinstance(node, Number) and isinstance(node.value, int)):
            return node
        name = f"r{node.value}"
        while name in taken:
            name += "_"
        taken.add(name)
        sizes[name] = node.value
        return Name(node.span, name)

    if isinstance(item, Composed):
        return replace(item, factors=tuple(map(named, item.factors)))
    if in_result and isinstance(item, Number) and item.value != 1:
        return Composed(item.span, (named(item),))
    return item


def _is_letters(written: Sequence[Sequence[Node]], shapes: Shapes) -> bool:
    """Whether the names are runs of letters, as ``numpy.einsum`` has them: only so are they as many as the operands have axes."""
    if not all(isinstance(item, (Name, Dots)) for items in written for item in items):
        return False
    fits = True
    for items, shape in zip(written, shapes, strict=True):
        names = [i.name for i in items if isinstance(i, Name)]
        letters, open_ended = sum(map(len, names)), len(names) < len(items)
        fits = fits and (letters == len(shape) or (open_ended and letters <= len(shape)))
    longer = any(isinstance(i, Name) and len(i.name) > 1 for items in written for i in items)
    return fits and (longer or all(len(items) <= 1 for items in written))


def _letters(items: Sequence[Node]) -> list[Node]:
    found: list[Node] = []
    for item in items:
        if isinstance(item, Name):
            start, source = item.span.start, item.span.source
            found += [Name(Span(source, start + n, start + n + 1), c) for n, c in enumerate(item.name)]
        else:
            found.append(item)
    return found


def _implied(written: Sequence[Sequence[Node]]) -> list[Node]:
    """The result that ``numpy.einsum`` gives where there is no ``->``: the letters that stand once, in the order of the alphabet."""
    letters = [i for items in written for i in _letters(items) if isinstance(i, Name)]
    once = [n for n in letters if sum(n.name == m.name for m in letters) == 1]
    dots = [i for items in written for i in items if isinstance(i, Dots)]
    return [*dots[:1], *sorted(once, key=lambda n: n.name)]


def _with_dots(own: Element, items: Sequence[Node], shape: Sequence[Any]) -> list[Node]:
    """The items of an operand with a name for each axis that ``...`` stands for, counted from the last one."""
    dots = [n for n, item in enumerate(items) if isinstance(item, Dots)]
    more = len(shape) - len(items) + len(dots)
    if len(dots) > 1:
        raise items[dots[1]].span.fault("... stands once in an operand")
    if more < 0 or (more and not dots):
        axes = f"{len(items) - len(dots)} {'axis' if len(items) - len(dots) == 1 else 'axes'}"
        raise own.span.fault(
            f"{axes}{' and ...' if dots else ''} for the operand {own.tensor}, which has the shape {tuple(shape)}; name each of its axes{'' if dots else ', or write ...'}",
            ShapeError,
        )
    if not dots:
        return list(items)
    at = dots[0]
    names = [Name(items[at].span, f"...{n}") for n in reversed(range(more))]
    return [*items[:at], *names, *items[at + 1 :]]


def _result_dots(result: Sequence[Node], listed: Sequence[Sequence[Node]]) -> list[Node]:
    found = {i.name: i for items in listed for i in items if isinstance(i, Name) and i.name.startswith("...")}
    ordered = sorted(found.values(), key=lambda n: -int(n.name[3:]))
    places = [n for n, item in enumerate(result) if isinstance(item, Dots)]
    if ordered and not places:
        raise ordered[0].span.fault(
            "the result has no ..., though an operand has axes there; write ... in the result, too"
        )
    at = places[0] if places else len(result)
    return [*result[:at], *ordered, *result[at + 1 :]]


def _dot_sizes(listed: Sequence[Sequence[Node]], shapes: Shapes) -> dict[str, Any]:
    """The extents of the axes of ``...``: where some operands have 1, that of the others."""
    found: dict[str, Any] = {}
    for items, shape in zip(listed, shapes, strict=True):
        for item, extent in zip(items, shape, strict=True):
            if isinstance(item, Name) and item.name.startswith("...") and found.get(item.name, 1) == 1:
                found[item.name] = extent
    return found


def _sizes(listed: Sequence[Sequence[Node]], shapes: Shapes, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes of all axes that stand alone, or in a composed axis of which they are the last that is not known."""
    known = dict(sizes)
    pairs = [
        (i, e) for items, shape in zip(listed, shapes, strict=True) for i, e in zip(items, shape, strict=True)
    ]
    for item, extent in pairs:
        if isinstance(item, Name) and not item.name.startswith("..."):
            if item.name in sizes and sizes[item.name] != extent:
                raise item.span.fault(
                    f"{item.name} is {extent} here, and {item.name}={sizes[item.name]} is given", ShapeError
                )
            known.setdefault(item.name, extent)
    waiting = [(i, e) for i, e in pairs if isinstance(i, Composed)]
    while waiting:
        ready = [(i, e) for i, e in waiting if sum(n.name not in known for n in _factors(i)) <= 1]
        if not ready:
            item, extent = waiting[0]
            names = [n.name for n in _factors(item) if n.name not in known]
            raise item.span.fault(
                f"the sizes of {' and '.join(names)} do not follow from their product, {extent}; give {names[-1]}=...",
                ShapeError,
            )
        for item, extent in ready:
            _divided(item, extent, known)
        waiting = [w for w in waiting if w not in ready]
    return known


def _divided(item: Composed, extent: Any, known: dict[str, Any]) -> None:
    """Learns the one size of a composed axis that is not known."""
    names = [n.name for n in _factors(item)]
    rest = prod(known[n] for n in names if n in known)
    missing = [n for n in names if n not in known]
    if isinstance(extent, int) and isinstance(rest, int):
        if (extent % rest if rest else extent) if missing else extent != rest:
            sizes = " * ".join(_size_text(n, known[n.name]) for n in _factors(item) if n.name in known)
            raise item.span.fault(
                f"an axis of {extent} elements is no multiple of {sizes}"
                if missing
                else f"{sizes} are not the {extent} elements of this axis",
                ShapeError,
            )
    if missing:
        known[missing[0]] = extent // rest if not isinstance(extent, int) or rest else 0


def _size_text(factor: Name, size: Any) -> str:
    """A size as the pattern or a keyword has it."""
    span = factor.span
    written = span.source.text[span.start : span.stop]
    return written if written.isdigit() else f"{factor.name}={size}"


def _factors(item: Composed) -> list[Name]:
    found = []
    for factor in item.factors:
        if not isinstance(factor, Name):
            raise factor.span.fault(
                "several axes that are one have names each, as in (h r), with r=2 as a keyword"
            )
        found.append(factor)
    return found


def _index(item: Node, extent: Any, dots: Mapping[str, Any]) -> Node:
    """The index of one axis of an operand."""
    if isinstance(item, Name) and item.name in dots and extent == 1 and dots[item.name] != 1:
        return Number(item.span, 0)
    if isinstance(item, Number) and item.value == 1 and extent == 1:
        return Number(item.span, 0)  # an axis of one element, as the result writes it
    _check_position(item, extent)
    if not isinstance(item, Composed):
        return item
    result: Node = Number(item.span, 0)
    for name in _factors(item):
        size = Name(item.span, f"{name.name}|")  # the size of an axis, beside the axis itself
        result = Operation(item.span, "add", (Operation(item.span, "multiply", (result, size)), name))
    return result


def _check_position(item: Node, extent: Any) -> None:
    """That a number, ``2`` or ``(-1)``, is a position of its axis."""
    if not isinstance(extent, int):
        return
    match item:
        case Number(value=value) if isinstance(value, int) and value < 0:
            raise item.span.fault(
                "positions do not count from the end, which is called end: i end, or (end-1)", ShapeError
            )
        case Number(value=value) if isinstance(value, int) and value >= extent:
            raise item.span.fault(
                f"there is no position {value} on an axis of {extent}; positions are counted from 0",
                ShapeError,
            )


def _check_keywords(
    given: Pattern, listed: Sequence[Sequence[Node]], result: Sequence[Node], sizes: Mapping[str, Any]
) -> None:
    names = {n.name for items in (*listed, result) for i in items for n in nodes_of(i) if isinstance(n, Name)}
    names |= {r.name.name for n in nodes_of(given.body) if isinstance(n, Reduction) for r in n.axes}
    for name in sizes:
        if name not in names:
            whole = Span(given.source, 0, len(given.source.text))
            raise whole.fault(
                f"{name}={sizes[name]} is given, but there is no such axis{nearest(name, names)}"
            )


def _replaced(node: Node, table: Mapping[Node, Node]) -> Node:
    if node in table:
        return table[node]
    match node:
        case Operation(args=args):
            return replace(node, args=tuple(_replaced(a, table) for a in args))
        case Reduction(values=values):
            return replace(node, values=tuple(_replaced(v, table) for v in values))
    return node

"""Zeros around an array of which no slice has any: the slices are of the array itself.

The widths of the zeros that a tensor is surrounded by follow from what its indices may be, whatever conditions keep them from. Where terms are written piece by
piece, as ``select(0 <= n // 4 - k, x[n // 4 - k, ...], 0)`` is for each ``k``, each piece reads what is there, and the zeros are around the sums of the pieces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from jaxte.lang.expr import Expr, as_expr
from jaxte.lower.arrays.elementwise import Kept, Name
from jaxte.lower.arrays.node import Node, nodes_below, replaced
from jaxte.lower.arrays.views import ALL, NEW, Entry, Index, Pad, Range, View
from jaxte.lower.code.vocabulary import AnyStatement, Function, PrefixFunction, Statement, with_sources
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known


def without_idle_pads(
    statements: Sequence[AnyStatement], tensors: Collection[str]
) -> tuple[list[AnyStatement], list[str]]:
    """``statements`` without the arrays with zeros around them that are read where there are none, and the names of what these surrounded.

    That is read in slices now, for each of which XLA would compute it again.

    Args:
        statements: those of one function.
        tensors: the names of tensors, which may be returned, or read by another function.
    """
    copies = [s for s in statements if isinstance(s, Statement) and s.target not in tensors]
    pads = {s.target: own for s in copies if (own := _pad(s.source))}
    if not pads:
        return list(statements), []
    for name in named_inside(statements):
        pads.pop(name, None)
    sources = [s.source for s in statements if isinstance(s, Statement)]
    table: dict[Node, Node] = {}
    for node in [*nodes_below(*sources), *(Kept(root) for root in sources if isinstance(root, Name))]:
        for operand in node.operands:
            if isinstance(operand, Name) and operand.identifier in pads:
                inside = _inside(node, pads[operand.identifier])
                if inside is None:
                    del pads[operand.identifier]
                else:
                    table[node] = inside
    if not pads:
        return list(statements), []
    gone = {
        n: new
        for n, new in table.items()
        if any(isinstance(o, Name) and o.identifier in pads for o in n.operands)
    }
    left = [s for s in statements if s.target not in pads]
    sliced = [own.array.identifier for own in pads.values() if isinstance(own.array, Name)]
    if not gone:
        return left, sliced
    return with_sources(left, lambda source: replaced(source, gone)), sliced


def _pad(source: Node) -> View | None:
    """The array with zeros that ``source`` is, of one that has a name."""
    array = source.array if isinstance(source, Kept) else source
    if not isinstance(array, View) or not isinstance(array.step, Pad) or array.step.mode != "zeros":
        return None
    sizes = [*array.array.shape, *(w for pair in array.step.widths for w in pair)]
    return array if isinstance(array.array, Name) and all(known(e) is not None for e in sizes) else None


def named_inside(statements: Sequence[AnyStatement]) -> Iterator[str]:
    """What is named by the functions among ``statements``."""
    stack = [s for s in statements if not isinstance(s, Statement)]
    while stack:
        own = stack.pop()
        roots: list[Node] = []
        match own:
            case Function():
                stack += [s for s in own.statements if not isinstance(s, Statement)]
                roots = [own.result, *(s.source for s in own.statements if isinstance(s, Statement))]
            case PrefixFunction():
                roots = [own.step, *own.identities]
        for node in nodes_below(*roots):
            if isinstance(node, Name):
                yield node.identifier


def _inside(node: Node, pad: View) -> Node | None:
    """``node``, a slice of ``pad``, as a slice of what that surrounds; None where it is no slice, or has zeros."""
    if not isinstance(node, View) or not isinstance(node.step, Index) or not isinstance(pad.step, Pad):
        return None
    entries: list[Entry] = []
    sides = iter(zip(pad.array.shape, pad.step.widths, strict=True))
    for entry in node.step.entries:
        if entry is NEW:
            entries.append(entry)
            continue
        extent, (before, behind) = next(sides)
        own = _shifted(entry, known(extent) or 0, known(before) or 0, known(behind) or 0)
        if own is None:
            return None
        entries.append(own)
    if any(known(w) for _, widths in sides for w in widths):
        return None
    return pad.array if all(e is ALL for e in entries) else View(pad.array, Index(tuple(entries)))


def _shifted(entry: Entry, extent: int, before: int, behind: int) -> Entry | None:
    """``entry`` of a dimension with ``before`` and ``behind`` zeros around ``extent`` elements, counted from the first element; None where it meets a zero."""
    if not before and not behind:
        return entry
    if isinstance(entry, Range):
        start = 0 if entry.start is None else known(entry.start)
        stop = before + extent + behind if entry.stop is None else known(entry.stop)
        if entry.step < 1 or start is None or stop is None or start < before or stop > before + extent:
            return None
        low, high = start - before, stop - before
        if (low, high, entry.step) == (0, extent, 1):
            return ALL
        return Range(as_expr(low) if low else None, as_expr(high) if high < extent else None, entry.step)
    if isinstance(entry, Expr):
        at = known(entry)
        return normal(entry - before) if at is not None and before <= at < before + extent else None
    return None

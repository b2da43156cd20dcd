"""Arrays of what is reduced, where it is computed of several slices: energies of differences, slopes of the coefficients of stencils, lengths of vectors.

XLA on the CPU hands a reduction of float32 numbers, and what is computed for it, to a library of kernels. These take whole arrays: each slice is copied
before, 13 ns for each element of a column. An array of what is reduced is one in place of several, written in vectors: 1.6 to 6 times as fast, 10 times
for the variation of an image of 2,048 x 2,048, 20 times for the lengths of 200 x 200 vectors of three elements. Elements of vectors may be combined in
other tensors, which XLA would fuse with the reduction.

Sums of many slices: a loop that reads more than some 100 of them is not written in vectors any more, and takes 5 to 20 times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from jaxte.lang.graphs import ordered
from jaxte.lang.limits import SMALL_ARRAY
from jaxte.lower.arrays.counts import bytes_of
from jaxte.lower.arrays.elementwise import Apply, Kept, Name
from jaxte.lower.arrays.loops import Total
from jaxte.lower.arrays.node import Node, nodes_below, replaced, rewritten
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import ALL, Broadcast, Index, New, Only, Pad, Range, Roll, Tile, View
from jaxte.lower.code.vocabulary import AnyStatement, Statement, with_sources
from jaxte.lower.program.across.barriers import behind_barrier


def with_arrays_of_slices(
    before: list[AnyStatement], lines: Sequence[AnyStatement], existing: Collection[str]
) -> list[AnyStatement]:
    """``lines`` with calls around what they reduce of several slices; a statement that is reduced as it is becomes one, also of those ``before``.

    Args:
        before: the statements in front of these.
        lines: those of one definition.
        existing: the names of what is an array in any case.
    """
    lines = list(lines)
    reducing = [own.source for own in lines if isinstance(own, Statement) and Reduced in own.source.kinds]
    arrays = [n.array for n in nodes_below(*reducing) if isinstance(n, Reduced)] if reducing else []
    reduced = [a for a in arrays if a.dtype == "float32" and bytes_of(a) >= SMALL_ARRAY]
    if not reduced:
        return lines
    here, there = ({s.target: s.source for s in part if isinstance(s, Statement)} for part in (lines, before))
    every = {name: source for name, source in (there | here).items() if name not in existing}
    sliced = [a for a in reduced if _is_of(a, here, _is_moved) or _is_of(a, every, _is_column)]
    _set_apart({array.identifier for array in sliced if isinstance(array, Name)}, before, lines)
    table: dict[Node, Node] = {array: Kept(array, "apart") for array in sliced if not isinstance(array, Name)}
    return with_sources(lines, lambda source: replaced(source, table)) if table else lines


def _is_of(node: Node, made: Mapping[str, Node], is_copied: Callable[[View], bool]) -> bool:
    """Whether ``node`` is computed of several slices that are about as large, and are copied, by way of what is ``made``, too."""
    root, size = node, bytes_of(node)

    def operands(below: Node) -> Sequence[Node]:
        if isinstance(below, Name) and below.identifier in made:
            return [made[below.identifier]]
        return below.operands if isinstance(below, (Apply, View, Broadcast)) else ()

    below: list[Node] = ordered([root], operands)
    if not any(isinstance(n, Apply) for n in below):
        return False
    if any(isinstance(n, View) and isinstance(n.step, Tile) for n in below):
        return False  # windows that are laid out are copies in any case
    # One slice as large as what is reduced is copied in either case.
    return sum(isinstance(n, View) and is_copied(n) and 2 * bytes_of(n) >= size for n in below) > 1


def _is_moved(view: View) -> bool:
    match view.step:
        case Index(entries):
            return any(not (isinstance(entry, (New, Only)) or entry is ALL) for entry in entries)
        case step:
            return isinstance(step, (Pad, Roll))


def _is_column(view: View) -> bool:
    """Whether elements that lie apart are taken: rows are copied as they lie, and other tensors are arrays where a gradient reads them, too."""
    match view.step:
        case Index(entries):
            own = [entry for entry in entries if not isinstance(entry, New)]
            return len(own) == view.array.ndim and not isinstance(own[-1], (Range, Only))
    return False


def with_long_sums_in_parts(
    before: list[AnyStatement], lines: Sequence[AnyStatement], most: int
) -> list[AnyStatement]:
    """``lines`` with sums of more slices than three times ``most`` as sums of so many at a time, of arrays that each of these would compute again."""
    found: list[Total] = []

    def rule(node: Node) -> Node:
        if not isinstance(node, Total) or node.parts.count <= 3 * most:
            return node
        found.append(node)
        return Total(node.parts, most)

    lines = with_sources(lines, lambda source: rewritten(source, rule) if Total in source.kinds else source)
    _set_apart({n.identifier for n in nodes_below(*found) if isinstance(n, Name)}, before, lines)
    return lines


def _set_apart(names: Collection[str], *parts: list[AnyStatement]) -> None:
    """Puts what ``names`` are, where statements of ``parts`` compute it, behind calls."""
    for statements in parts if names else ():
        for n, own in enumerate(statements):
            if isinstance(own, Statement) and own.target in names:
                statements[n] = behind_barrier(own, by_call=True)

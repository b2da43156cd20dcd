"""Arrays that XLA for TPUs makes of a view, written as what is computed in what reads them.

An element one position on, held at the end, is a choice between an array and its shift: XLA makes arrays of the slice, of the element that is repeated, and of
both side by side. A stencil of five points takes 3 kernels for 5, and 10,541 cycles for 16,654.

    jnp.pad(x[:-1], (1, 0), mode="edge")    is    jnp.where(jnp.arange(n) == 0, x, _shifted(x, 1))

Arrays whose elements alternate are pads that are added, each with zeros where the others' elements are:

    jnp.stack([a, b], axis=1).reshape(2 * n)    is    lax.pad(a, 0.0, ((0, 1, 1),)) + lax.pad(b, 0.0, ((1, 0, 1),))

Elements that are repeated along the rows of registers are one sum over windows of what has zeros between its elements: each window has one element. XLA makes an array
for each repeat, broadcasts it to a shape with one more axis, whose tiles are mostly padding, and copies that into the shape that is wanted.

    jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)    is    lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 1, 1), ..., base_dilation=(1, 2, 2))

Zeros around an array of which no slice has any: the slices are of the array itself.

The widths of the zeros that a tensor is surrounded by follow from what its indices may be, whatever conditions keep them from. Where terms are written piece by
piece, as ``select(0 <= n // 4 - k, x[n // 4 - k, ...], 0)`` is for each ``k``, each piece reads what is there, and the zeros are around the sums of the pieces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from math import prod

from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import ZERO, Expr, as_expr
from jaxte.lang.limits import FEW, MOST_TERMS
from jaxte.lang.operators import ADD, EQUAL, SELECT
from jaxte.lower.arrays.elementwise import Apply, Arange, Kept, Name, Number, Typed, number
from jaxte.lower.arrays.loops import Each, Stacked
from jaxte.lower.arrays.node import Node, nodes_below, replaced, rewritten
from jaxte.lower.arrays.products import ReduceWindow
from jaxte.lower.arrays.views import ALL, NEW, Entry, Index, Pad, Range, Repeat, Reshape, Spread, View
from jaxte.lower.code.vocabulary import AnyStatement, Function, PrefixFunction, Statement, with_sources
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known

_ROWS = 2  # the last axes, which lie in registers


def with_ends_chosen(source: Node) -> Node:
    """``source`` in which what is held at an end one position on is chosen there."""
    return rewritten(source, lambda node: _end_chosen(node) or node)


def _end_chosen(node: Node) -> Node | None:
    """``node`` as a choice, if it is a part of an array one position on along one dimension, with the element at the end repeated."""
    match node:
        case View(View(array, Index(entries)), Pad(widths, "edge")) if is_float(node.dtype):
            pass
        case _:
            return None
    ends = [(known(low), known(high)) for low, high in widths]
    moved = [n for n, own in enumerate(ends) if own != (0, 0)]
    if len(moved) != 1 or ends[moved[0]] not in ((1, 0), (0, 1)) or None in map(known, node.shape):
        return None
    axis, is_first = moved[0], ends[moved[0]] == (1, 0)
    part = _with_end(array, entries, axis, is_first)
    if part is None or len(part.shape) != len(widths):
        return None
    by, last = (1, 0) if is_first else (-1, (known(node.shape[axis]) or 0) - 1)
    shift: list[tuple[Expr, Expr, int]] = [(as_expr(0), as_expr(0), 0)] * len(widths)
    shift[axis] = (as_expr(by), as_expr(-by), 0)
    shifted = Spread(part, Typed(Number(0), node.dtype), tuple(shift))
    at_end: Node = Apply(EQUAL, (Arange(0, node.shape[axis]), Number(last)))
    if later := len(widths) - 1 - axis:
        at_end = View(at_end, Index((ALL, *[NEW] * later)))
    return Apply(SELECT, (at_end, part, shifted))


def _with_end(array: Node, entries: Sequence[Entry], axis: int, is_first: bool) -> Node | None:
    """The slice of ``array`` that ``entries`` are, with one position more behind it, or before it; None where there is none."""
    if len(entries) != len(array.shape) or not all(isinstance(e, Range) for e in entries):
        return None  # a dimension is gone, or new
    entry, extent = entries[axis], known(array.shape[axis])
    if not isinstance(entry, Range) or entry.step != 1 or extent is None:
        return None
    start = 0 if entry.start is None else known(entry.start)
    stop = extent if entry.stop is None else known(entry.stop)
    if start is None or stop is None or not 0 <= start < stop <= extent:
        return None
    start, stop = (start, stop + 1) if is_first else (start - 1, stop)
    if start < 0 or stop > extent:
        return None
    whole = (start, stop) == (0, extent)
    more = list(entries)
    more[axis] = (
        ALL if whole else Range(as_expr(start) if start else None, as_expr(stop) if stop < extent else None)
    )
    return array if all(e is ALL for e in more) else View(array, Index(tuple(more)))


def with_pads_between(source: Node) -> Node:
    """``source`` in which what alternates is padded and added."""
    return rewritten(source, lambda node: _pads_added(node) or node)


def _pads_added(node: Node) -> Node | None:
    """``node`` as a sum of pads, if it is a stack whose last dimension but one, and its own, are one."""
    # Arrays that alternate, each of which all others are padded for.
    match node:
        case View(Stacked(parts, axis), Reshape()) if (
            is_float(node.dtype) and axis > 0 and 1 < len(parts) <= FEW
        ):
            pass
        case _:
            return None
    if any(isinstance(p, Each) for p in parts):
        return None
    own, found = [[known(e) for e in shape] for shape in (parts[0].shape, node.shape)]
    if None in own or None in found or len(own) != len(found):
        return None
    count, dim = len(parts), axis - 1
    if found != [(e or 0) * (count if n == dim else 1) for n, e in enumerate(own)]:
        return None

    def padded(part: Node, before: int) -> Node:
        widths: list[tuple[Expr, Expr, int]] = [(as_expr(0), as_expr(0), 0)] * len(own)
        widths[dim] = (as_expr(before), as_expr(count - 1 - before), count - 1)
        return Spread(part, Typed(Number(0), node.dtype), tuple(widths))

    return reduce(lambda a, b: Apply(ADD, (a, b)), [padded(p, n) for n, p in enumerate(parts)])


def with_repeats_as_windows(source: Node) -> Node:
    """``source`` in which elements are repeated along the last axes by sums over windows."""
    return rewritten(source, lambda node: _repeat_as_window(node) or node)


def _repeat_as_window(node: Node) -> ReduceWindow | None:
    """``node`` as sums over windows, if it repeats elements along rows; what it repeats may be repeated itself."""
    if not isinstance(node, View) or not isinstance(node.step, Repeat) or not is_float(node.dtype):
        return None
    ndim = len(node.shape)
    sizes = [1] * ndim
    array: Node = node
    while isinstance(array, View) and isinstance(array.step, Repeat):
        sizes[array.step.axis] *= known(array.step.times) or 0
        array = array.array
    if isinstance(array, ReduceWindow) and _repeats(array):
        sizes, array = [a * b for a, b in zip(sizes, array.sizes, strict=True)], array.array
    if (
        None in map(known, node.shape)
        or all(s == 1 for s in sizes[-_ROWS:])
        or not 0 < prod(sizes) <= MOST_TERMS
    ):
        return None
    plain = node.dtype in ("float32", "float64")
    return ReduceWindow(
        "sum",
        array,
        number(0.0) if plain else Typed(number(0.0), node.dtype),
        sizes=tuple(sizes),
        strides=(1,) * ndim,
        padding=tuple((as_expr(s - 1), as_expr(s - 1)) if s > 1 else (ZERO, ZERO) for s in sizes),
        spacing=tuple(sizes),
        dilation=(1,) * ndim,
    )


def _repeats(windows: ReduceWindow) -> bool:
    return windows.function == "sum" and windows.spacing == windows.sizes and prod(windows.strides) == 1


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

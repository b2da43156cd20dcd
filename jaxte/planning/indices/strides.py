"""Strided windows as frames: ``x[s * i + t]`` in a product of matrices over ``t`` as a tensor of its own, of the overlapping rows.

    sum over t of x[b, s * i + t] * C[t, f]   is   sum over u, r of X[b, i, u, r] * C[g * u + r, f]
    with                                           X[b, i, u, r] = x[b, s * i + g * u + r]

where ``g`` divides ``s`` and how many ``t`` there are. The frames are a few slices side by side, what is left is one product of matrices, and
the adjoint of the frames adds their slices up where they overlap. So are rows that are summed over ``i`` beside an array of as many elements, as what flows
back to a window ``w[t]`` of frames ``x[b, i, t] * w[t]`` that were added where they overlap. Where other axes are summed as well (the channels of a convolution), or where
there are few columns ``f``, frames are as large as what is computed with them, and the sum stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from jaxte.algebra.product import product_of
from jaxte.lang.expr import ZERO, Axis, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import MOST_TERMS, NARROW, VECTOR
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent
from jaxte.tensors.structure import laid_out
from jaxte.tensors.tensor import Compute


class Frames(Compute):
    """The rows of a strided window."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Window:
    """``read`` has the index ``stride * position + tap + start`` at ``place``."""

    read: Read
    place: int
    stride: int
    tap: Axis

    @property
    def row(self) -> int:
        """The length of rows of which the window and the stride are multiples."""
        return gcd(self.stride, extent(self.tap))

    @property
    def slices(self) -> int:
        return extent(self.tap) // self.row


def with_frames(node: Reduce, axes: Sequence[Axis]) -> Reduce:
    """``node`` with its strided window as frames; as it is where it has none, or more than that."""
    found = _window(node, axes)
    if found is None:
        return _over_rows(node, axes)
    taken = free_axes(found.read)
    own = {a: Axis(a.name, 0, a.extent) for a in axes if a in taken}
    parts = Axis("u", 0, found.slices), Axis("r", 0, found.row)
    table: dict[Expr, Expr] = {old: normal(new + old.lo) for old, new in own.items()}
    table[found.tap] = normal(found.row * parts[0] + parts[1])
    element = Read(found.read.tensor, [normal(substitute(index, table)) for index in found.read.indices])
    frames = laid_out(Frames, f"{found.read.tensor.name}_frames", [*own.values(), *parts], element)
    summed = tuple(Axis(a.name, 0, a.hi, reduction=True) for a in parts)
    rest: dict[Expr, Expr] = {found.read: Read(frames, [*(normal(a - a.lo) for a in own), *summed])}
    rest[found.tap] = normal(found.row * summed[0] + summed[1])
    return Reduce(node.reducer, [substitute(node.exprs[0], rest)], summed, node.where, node.position)


def _over_rows(node: Reduce, axes: Sequence[Axis]) -> Reduce:
    """``node``, a sum over the rows of a strided window beside an array with an element for each of its own, with frames; ``node`` where it is none."""
    if node.reducer.name != "sum" or node.exprs[0].reduces:
        return node
    reads = {
        f.expr: f for f in product_of(node.exprs[0]).factors if isinstance(f.expr, Read) and not f.inverse
    }
    for read in reads:
        assert isinstance(read, Read)
        own = free_axes(read)
        found = next(filter(None, (_row(read, n, node, axes) for n in range(len(read.indices)))), None)
        beside = any(other is not read and own.keys() <= free_axes(other).keys() for other in reads)
        if found is None or not beside or not all(a.lo is ZERO for a in own):
            continue
        new = {a: Axis(a.name, 0, a.extent) for a in own if a is not found.tap}
        parts = Axis("u", 0, found.slices), Axis("r", 0, found.row)
        table: dict[Expr, Expr] = dict(new.items())
        table[found.tap] = normal(found.row * parts[0] + parts[1])
        element = Read(read.tensor, [normal(substitute(index, table)) for index in read.indices])
        frames = laid_out(Frames, f"{read.tensor.name}_frames", [*new.values(), *parts], element)
        at = Read(frames, [*new, found.tap // found.row, found.tap % found.row])
        return Reduce(
            node.reducer, [substitute(node.exprs[0], {read: at})], node.axes, node.where, node.position
        )
    return node


def _row(read: Read, place: int, node: Reduce, axes: Sequence[Axis]) -> _Window | None:
    """The strided window of an index whose rows are summed over and whose taps are an axis of the result."""
    taps = [a for a in free_axes(read.indices[place]) if not among(a, node.axes)]
    return _at(read, place, taps[0]) if len(taps) == 1 and among(taps[0], axes) else None


def _window(node: Reduce, axes: Sequence[Axis]) -> _Window | None:
    """The only read of ``node`` that has an index of an output axis and of the reduced one."""
    if node.reducer.name != "sum" or len(node.axes) != 1 or depends_on(node.where, node.axes):
        return None
    if any(isinstance(below, Reduce) for below in postorder(node.exprs[0])):
        return None
    (tap,) = node.axes
    over = [r for r in reads_of(node.exprs[0]) if depends_on(r, node.axes)]
    mixed = [r for r in over if any(_mixes(i, tap, axes) for i in r.indices)]
    if len(mixed) != 1 or any(map(reads_of, mixed[0].indices)):
        return None
    (read,) = mixed
    places = [n for n, index in enumerate(read.indices) if tap in free_axes(index)]
    found = _at(read, places[0], tap) if len(places) == 1 else None
    columns = {a for r in over if r is not read for a in free_axes(r) if a not in free_axes(read)}
    # The columns of the product, among which laying the rows out is shared.
    return found if prod(map(extent, columns)) >= NARROW or _is_function(node.exprs[0], read) else None


def _is_function(summand: Expr, read: Read) -> bool:
    """Whether ``summand`` is no multiple of ``read``: no convolution, its windows are laid out one beside the other."""
    return not any(f.expr is read and not f.inverse for f in product_of(summand).factors)


def _mixes(index: Expr, tap: Axis, axes: Sequence[Axis]) -> bool:
    return tap in free_axes(index) and depends_on(index, axes)


def _at(read: Read, place: int, tap: Axis) -> _Window | None:
    index = read.indices[place]
    if not is_index(index) or tap.lo is not ZERO or not isinstance(tap.extent, Const):
        return None
    form = linear(index)
    rest = [(atom, factor) for atom, factor in form.terms.items() if atom is not tap]
    if form.coefficient(tap) != 1 or len(rest) != 1 or not isinstance(rest[0][0], Axis):
        return None
    position, stride = rest[0]
    if any(position in free_axes(other) for n, other in enumerate(read.indices) if n != place):
        return None
    found = _Window(read, place, stride, tap)
    # Rows that are shorter are not worth slices.
    if stride <= 0 or found.row < VECTOR or not stride < extent(tap) or found.slices > MOST_TERMS:
        return None
    return found

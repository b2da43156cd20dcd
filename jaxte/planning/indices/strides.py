"""Strided windows as frames: ``x[s * i + t]`` in a product of matrices over ``t`` as a tensor of its own, of the overlapping rows.

    sum over t of x[b, s * i + t] * C[t, f]   is   sum over u, r of X[b, i, u, r] * C[g * u + r, f]
    with                                           X[b, i, u, r] = x[b, s * i + g * u + r]

where ``g`` divides ``s`` and how many ``t`` there are. The frames are a few slices side by side, what is left is one product of matrices, and
the adjoint of the frames adds their slices up where they overlap. So are rows that are summed over ``i`` beside an array of as many elements, as what flows
back to a window ``w[t]`` of frames ``x[b, i, t] * w[t]`` that were added where they overlap. Where other axes are summed as well (the channels of a convolution), or where
there are few columns ``f``, frames are as large as what is computed with them, and the sum stays as it is.

Elements of one gathered row as reads of a tensor of such rows: each row is gathered once, and its adjoint is scattered once.

    v[faces[f, 1], (c + 1) % 3] * v[faces[f, 1], (c + 2) % 3]   is   R[f, (c + 1) % 3] * R[f, (c + 2) % 3]
    with                                                             R[f, d] = v[faces[f, 1], d]

Several elements of a row at a position that is data would each be gathered, and each of their adjoints added to where it belongs, row by
row again. With the rows as a tensor all else has positions that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from jaxte.algebra.product import product_of
from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import MOST_TERMS, NARROW, VECTOR
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.sets.affine import linear, normal
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.shapes import Extent
from jaxte.tensors.structure import Rows, laid_out
from jaxte.tensors.tensor import Compute, Tensor


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
    return node.changed(exprs=[substitute(node.exprs[0], rest)], axes=summed)


def _over_rows(node: Reduce, axes: Sequence[Axis]) -> Reduce:
    """``node``, a sum over the rows of a strided window beside an array with an element for each of its own, with frames; ``node`` where it is none."""
    if not node.is_sum or node.exprs[0].reduces:
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
        return node.changed(exprs=[substitute(node.exprs[0], {read: at})])
    return node


def _row(read: Read, place: int, node: Reduce, axes: Sequence[Axis]) -> _Window | None:
    """The strided window of an index whose rows are summed over and whose taps are an axis of the result."""
    taps = [a for a in free_axes(read.indices[place]) if not among(a, node.axes)]
    return _at(read, place, taps[0]) if len(taps) == 1 and among(taps[0], axes) else None


def _window(node: Reduce, axes: Sequence[Axis]) -> _Window | None:
    """The only read of ``node`` that has an index of an output axis and of the reduced one."""
    if not node.is_sum or len(node.axes) != 1 or depends_on(node.where, node.axes):
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Rows of ``tensor``: ``at`` has the indices that are data, and None for each dimension of a row."""

    tensor: Tensor
    at: tuple[Expr | None, ...]

    def rest(self, read: Read) -> tuple[Expr, ...]:
        """Where in the row ``read`` is."""
        return tuple(index for index, own in zip(read.indices, self.at, strict=True) if own is None)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(dict.fromkeys(a for index in self.at if index is not None for a in free_axes(index)))

    @property
    def shape(self) -> list[Extent]:
        """The extents of a row."""
        return [e for e, own in zip(self.tensor.shape, self.at, strict=True) if own is None]


def with_rows(body: Expr) -> Expr:
    """``body`` with reads of several elements of a gathered row as reads of rows."""
    places: dict[_Place, dict[Read, None]] = {}
    for read in reads_of(body):
        if any(map(reads_of, read.indices)) and (place := _place(read)) is not None:
            places.setdefault(place, {})[read] = None
    table: dict[Expr, Expr] = {}
    made: list[Rows] = []
    for place, reads in places.items():
        if _gains(place, list(reads)) and (rows := _rows(place, len(made))) is not None:
            made.append(rows)
            table |= {read: Read(rows, [*place.axes, *place.rest(read)]) for read in reads}
    return substitute(body, table) if table else body


def _place(read: Read) -> _Place | None:
    """The rows that ``read`` has an element of; None where it has none, or where a row has no length."""
    if not dtypes.is_inexact(read.tensor.dtype):
        return None
    place = _Place(read.tensor, tuple(i if reads_of(i) else None for i in read.indices))
    rest = place.rest(read)
    if not rest or not all(map(is_index, rest)) or not all(isinstance(e, int) for e in place.shape):
        return None
    return place if all(axis.lo is ZERO for axis in place.axes) else None


def _gains(place: _Place, reads: Sequence[Read]) -> bool:
    """Whether ``reads`` are several elements of each row: most of a short one together, or all of a long one in parts."""
    rests = dict.fromkeys(place.rest(read) for read in reads)
    inner = [[a for index in rest for a in free_axes(index)] for rest in rests]
    if len(rests) < 2 or any(among(a, place.axes) for own in inner for a in own):
        return False
    length = prod(e for e in place.shape if isinstance(e, int))
    met = sum(prod(map(extent, dict.fromkeys(own))) for own in inner)
    return 2 * met >= length if length <= MOST_TERMS else met >= length


def _rows(place: _Place, number: int) -> Rows | None:
    """The tensor of rows; None where it would read what only a condition keeps in range."""
    own = {a: Axis(a.name, 0, a.hi) for a in place.axes}
    row = [Axis("d", 0, e) for e in place.shape]
    positions = iter(row)
    indices = [next(positions) if i is None else substitute(i, own) for i in place.at]
    axes = [*own.values(), *row]
    element = Read(place.tensor, indices)
    name = f"{place.tensor.name}_rows" + (f"_{number}" if number else "")
    return Rows(name, axes, element) if reads_inside(axes, element) else None

"""Elements of one gathered row as reads of a tensor of such rows: each row is gathered once, and its adjoint is scattered once.

    v[faces[f, 1], (c + 1) % 3] * v[faces[f, 1], (c + 2) % 3]   is   R[f, (c + 1) % 3] * R[f, (c + 2) % 3]
    with                                                             R[f, d] = v[faces[f, 1], d]

Several elements of a row at a position that is data would each be gathered, and each of their adjoints added to where it belongs, row by
row again. With the rows as a tensor all else has positions that are known.

What a sum over pairs is a function of, as a tensor of its own: ``f(x[i] - y[j])`` is ``f(d[i, j])`` with ``d[i, j] = x[i] - y[j]``.

    l[b] = sum over i, j of log1p(exp(-(s[b, i] - s[b, j])))

passes something on to ``s[b, i]`` and to ``s[b, j]``. Both are sums of the slope at each pair, over one side and over the other, and each of them
would compute the slope again, its exponentials too, over a box of its own. The adjoint of ``d`` is that slope, computed once at all pairs; the
adjoints of both sides add it up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.algebra.sums import weight
from jaxte.lang import dtypes
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW, MOST_HELD, MOST_TERMS
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, known
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.shapes import Extent
from jaxte.tensors.structure import Rows
from jaxte.tensors.tensor import Compute, Placeholder, Tensor


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
    """Whether ``reads`` are several elements of each row, most of a short one together."""
    rests = dict.fromkeys(place.rest(read) for read in reads)
    inner = [[a for index in rest for a in free_axes(index)] for rest in rests]
    if len(rests) < 2 or any(among(a, place.axes) for own in inner for a in own):
        return False
    length = prod(e for e in place.shape if isinstance(e, int))
    met = sum(prod(map(extent, dict.fromkeys(own))) for own in inner)
    return length <= MOST_TERMS and 2 * met >= length


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


_FEWEST = 20  # pairs for each element of a side: a sum over fewer is one loop that holds nothing
_PLAIN = frozenset((ADD, SUBTRACT, MULTIPLY, NEGATIVE))  # what sums take apart by themselves


class Pairs(Compute):
    """What is computed of each pair of elements."""

    __slots__ = ()


def with_pairs(tensor: Compute) -> Expr:
    """The body of ``tensor``, with sums and products of elements on two sides that it is a function of as tensors of their own."""
    body = tensor.body
    if not isinstance(body, Reduce) or body.reducer.name != "sum" or not dtypes.is_float(body.dtype):
        return body
    table: dict[Expr, Expr] = {}
    for node in _arguments(body.exprs[0]):
        axes = _pair_of(node)
        if axes and _is_worth(body.exprs[0], node, axes):
            table[node] = _element(f"{tensor.name}_pairs" + (f"_{len(table)}" if table else ""), axes, node)
    return substitute(body, table) if table else body


def _arguments(root: Expr) -> Iterator[Expr]:
    """The sums and products of elements below ``root`` that a function, a choice or a quotient is of."""
    plain: set[Expr] = set()
    found: dict[Expr, None] = {}
    for node in postorder(root):
        if _is_plain(node, plain):
            plain.add(node)
        elif isinstance(node, Call):
            found |= {a: None for a in node.args if a in plain and isinstance(a, Call) and not a.weak}
    yield from found


def _is_plain(node: Expr, plain: Collection[Expr]) -> bool:
    """Whether ``node`` is a number, an element at axes of its own, or a sum or a product of those in ``plain``."""
    match node:
        case Const():
            return True
        case Read():
            at_axes = all(isinstance(index, Axis) and index.lo is ZERO for index in node.indices)
            return at_axes and dtypes.is_float(node.dtype)
        case Call():
            by_number = node.op is DIVIDE and isinstance(node.args[1], Const)
            return (node.op in _PLAIN or by_number) and all(a in plain for a in node.args)
    return False


def _pair_of(node: Expr) -> tuple[Axis, ...]:
    """The axes of ``node``; none where it is not of two sides that have a derivative, each of which lacks an axis of the other."""
    reads = reads_of(node)
    axes = {a for read in reads for a in free_axes(read)}
    sides = {frozenset(free_axes(r)) for r in reads if isinstance(r.tensor, Placeholder) or r.tensor.inputs}
    numbers = all(known(a.extent) is not None for a in axes)
    return _in_order(reads) if len(sides) > 1 and numbers and frozenset(axes) not in sides else ()


def _in_order(reads: Sequence[Read]) -> tuple[Axis, ...]:
    """The axes of ``reads``, those of each in its own order where that can be: i, j, d of ``q[i, d]`` and ``k[j, d]``."""
    left = dict.fromkeys(a for read in reads for a in free_axes(read))
    found: list[Axis] = []
    while left:
        behind = {a for read in reads for a in [n for n in read.indices if n in left][1:]}
        axis = next((a for a in left if a not in behind), next(iter(left)))
        found.append(axis)
        del left[axis]
    return tuple(found)


def _is_worth(root: Expr, node: Expr, axes: Sequence[Axis]) -> bool:
    """Whether the slope at ``node`` takes more than a few operations, there are many for each element, and all fit into memory that is near."""
    pairs = prod(map(extent, axes))
    sides = max(prod(map(extent, free_axes(read))) for read in reads_of(node))
    fits = 0 < pairs * dtypes.width(node.dtype) <= MOST_HELD
    # Operations on a pair for which its slope is computed once.
    return fits and pairs >= _FEWEST * sides and sum(map(weight, _above(root, node))) >= FEW


def _above(root: Expr, node: Expr) -> list[Call]:
    """The operations between ``root`` and ``node``."""
    reached: dict[Expr, None] = {node: None}
    for n in postorder(root):
        if isinstance(n, Call) and any(child in reached for child in n.children):
            reached[n] = None
    return [n for n in reached if isinstance(n, Call) and n is not node]


def _element(name: str, axes: Sequence[Axis], node: Expr) -> Expr:
    own = {a: Axis(a.name, 0, a.hi) for a in axes}
    return Read(Pairs(name, tuple(own.values()), substitute(node, own)), axes)

"""Tensors that repeat the elements of another one: sums of functions of them count each element, in place of reading it again.

    up[i, j] = x[i // 2, j],    sum over i, j of f(up[i, j])    is   sum over h, j of 2 * f(x[h, j])
    tiled[i] = x[i % 8],        sum over i of f(tiled[i])       is   sum over r of n // 8 * f(x[r])

This holds where nothing else in the sum depends on the axes along which elements are repeated.

Tensors that have elements of another one as they are: sums read these where they come from.

    at[i, j, d] = r[i - j + n - 1, d],              sum over d of q[i, d] * at[i, j, d]    is   sum over d of q[i, d] * r[i - j + n - 1, d]
    wide[b, i] = select(i >= 3, x[b, i - 3], 0),    sum over k of wide[b, i + k] * w[k]    is   sum over k of x[b, i + k - 3] * w[k] where i + k >= 3

A tensor with more elements than what it is made of would be laid out in memory and multiplied in whole, and zeros around a tensor hide that a
convolution has padding. What a maximum is taken of may have minus infinity around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from jaxte.algebra.product import product_of
from jaxte.lang.divisions import Division, Quotient, division
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import among
from jaxte.lang.operators import MULTIPLY, SELECT
from jaxte.lang.walk import free_axes, postorder, reads_of, reductions, substitute
from jaxte.sets.affine import linear
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import extent, extent_of
from jaxte.sets.isl_text import is_decidable
from jaxte.tensors.tensor import Compute, Tensor

Repeat = tuple[str, int]  # a quotient or a remainder, and how often each element is there


def with_repeats_counted(body: Expr) -> Expr:
    """``body`` with its sums over repeated elements as sums over what is repeated."""
    table: dict[Expr, Expr] = {}
    for node in reductions(body):
        if node.is_sum and node.where is TRUE:
            counted = _counted(node)
            if counted is not None:
                table[node] = counted
    return substitute(body, table) if table else body


def _counted(node: Reduce) -> Reduce | None:
    """``node`` over the elements that are repeated, times how often; None where it reads none, or something else depends on these axes."""
    repeated: dict[Axis, Repeat] = {}
    through: list[Read] = []
    for read in reads_of(*node.exprs):
        found = _along(read)
        if found and all(repeated.setdefault(axis, own) == own for axis, own in found.items()):
            through.append(read)
    if not repeated or not repeated.keys() <= set(node.axes):
        return None
    times = {axis: n for axis, (_, n) in repeated.items()}
    fewer = {a: Axis(a.name, 0, _extent(a) // n, reduction=True) for a, n in times.items()}
    table: dict[Expr, Expr] = {read: _source(read, fewer) for read in through}
    (expr,) = (substitute(e, table) for e in node.exprs)
    if free_axes(expr).keys() & times.keys():
        return None
    scaled = call(MULTIPLY, Const(prod(times.values())), expr)
    return node.changed(exprs=[scaled], axes=[fewer.get(a, a) for a in node.axes])


def _along(read: Read) -> dict[Axis, Repeat]:
    """The axes along which ``read`` takes each element several times, in which order and how often; none where its tensor is no such repetition.

    An axis that two indices depend on is taken apart, ``x[i // 2, i % 2]``: each element is there once.
    """
    tensor = read.tensor
    if type(tensor) is not Compute or tensor.override is not None or not isinstance(tensor.body, Read):
        return {}
    own = [i for i in read.indices if isinstance(i, Axis)]
    if len(own) < len(read.indices) or len(set(own)) < len(own):
        return {}
    moving = [a for i in tensor.body.indices for a in free_axes(i)]
    if len(set(moving)) < len(moving):
        return {}
    found: dict[Axis, Repeat] = {}
    place = dict(zip(tensor.axes, own, strict=True))
    for index in tensor.body.indices:
        match division(index):
            case Division(Axis() as axis, int() as n) as divided:
                extent = _extent(axis)
                if n < 1 or not extent or extent % n or _extent(place[axis]) != extent:
                    return {}
                is_quotient = isinstance(divided, Quotient)
                found[place[axis]] = divided.node.op.name, n if is_quotient else extent // n
            case _ if not isinstance(index, (Axis, Const)):
                return {}
    return found


def _source(read: Read, fewer: dict[Axis, Axis]) -> Read:
    """The element that ``read`` takes where it comes from, at the axes ``fewer`` in place of those along which it is repeated."""
    assert isinstance(read.tensor, Compute) and isinstance(read.tensor.body, Read)
    place: dict[Expr, Expr] = dict(zip(read.tensor.axes, read.indices, strict=True))
    indices = [
        fewer[place[i.children[0]]] if isinstance(i, Call) else place.get(i, i)  # type: ignore[index]
        for i in read.tensor.body.indices
    ]
    return Read(read.tensor.body.tensor, indices)


def _extent(axis: Axis) -> int:
    """How many values an axis takes; 0 where that is symbolic."""
    extent = axis.extent
    return extent.value if isinstance(extent, Const) and isinstance(extent.value, int) else 0


def layouts(order: Iterable[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, Compute]:
    """The tensors of ``order`` that only reductions read, which may read through them."""
    order = list(order)
    found: dict[Tensor, Compute] = {
        t: t for t in order if isinstance(t, Compute) and not among(t, outputs) and _element(t) is not None
    }
    for tensor in order:
        if not found or not isinstance(tensor, Compute):
            continue
        through = set(_reads(tensor.body, found))
        for read in reads_of(tensor.body):
            if read not in through:
                found.pop(read.tensor, None)
    return found


def read_through(body: Expr, known: Mapping[Tensor, Compute]) -> Expr:
    """``body`` with reads of the tensors ``known``, of :func:`layouts`, as what they have there."""
    table: dict[Expr, Expr] = {read: known[read.tensor].element(read.indices) for read in _reads(body, known)}
    return substitute(body, table)


def _reads(body: Expr, known: Mapping[Tensor, Compute]) -> Iterator[Read]:
    """The reads of ``known`` tensors that are a factor of a sum, or what another reduction is about."""
    for node in postorder(body):
        if not isinstance(node, Reduce) or not node.reducer.ignores_order:
            continue
        own = [*node.exprs]
        if node.is_sum:
            own = [f.expr for f in product_of(own[0]).factors if not f.inverse]
        for read in own:
            if isinstance(read, Read) and read.tensor in known and all(map(is_index, read.indices)):
                around = _around(known[read.tensor])
                if around is None or around.value == node.reducer.identity[0].value:  # type: ignore[attr-defined]
                    yield read


def _element(tensor: Compute) -> Read | None:
    """The element of another tensor that one of ``tensor`` is, with zeros or the like around it; None where it is something else.

    Of tensors that the user has, or an adjoint: what planning lays out is laid out on purpose.
    """
    if type(tensor) is not Compute or tensor.part_of != tensor.name or tensor.override is not None:
        return None
    around, read = _around(tensor), tensor.body
    if around is not None:
        assert isinstance(tensor.body, Call)
        _, taken, other = tensor.body.args
        read = other if taken is around else taken
    if not isinstance(read, Read) or read.dtype != tensor.dtype or not all(map(_is_straight, read.indices)):
        return None
    size = prod(map(extent_of, read.tensor.shape))
    return read if around is not None or size < prod(map(extent, tensor.axes)) else None


def _around(tensor: Compute) -> Const | None:
    """The number that stands around the elements of another tensor, where positions tell which is which."""
    match tensor.body:
        case Call(op, (test, taken, other)) if op is SELECT and is_decidable(test):
            return next((e for e in (taken, other) if isinstance(e, Const)), None)
    return None


def _is_straight(index: Expr) -> bool:
    """Whether an index is affine in axes, without quotients, remainders or ends."""
    return is_index(index) and all(isinstance(atom, Axis) for atom in linear(index).terms)

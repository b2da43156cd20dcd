"""Tensors that repeat the elements of another one: sums of functions of them count each element, in place of reading it again.

    up[i, j] = x[i // 2, j],    sum over i, j of f(up[i, j])    is   sum over h, j of 2 * f(x[h, j])
    tiled[i] = x[i % 8],        sum over i of f(tiled[i])       is   sum over r of n // 8 * f(x[r])

This holds where nothing else in the sum depends on the axes along which elements are repeated.
"""

from __future__ import annotations

from math import prod

from jaxte.lang.divisions import Division, Quotient, division
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.operators import MULTIPLY
from jaxte.lang.walk import free_axes, postorder, reads_of, substitute
from jaxte.tensors.tensor import Compute

Repeat = tuple[str, int]  # a quotient or a remainder, and how often each element is there


def with_repeats_counted(body: Expr) -> Expr:
    """``body`` with its sums over repeated elements as sums over what is repeated."""
    table: dict[Expr, Expr] = {}
    for node in postorder(body):
        if isinstance(node, Reduce) and node.reducer.name == "sum" and node.where is TRUE:
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
    return Reduce(node.reducer, [scaled], [fewer.get(a, a) for a in node.axes], node.where, node.position)


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

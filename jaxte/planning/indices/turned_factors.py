"""Small factors at positions that wrap, laid out: tensors over the axes of the sum, which are read as they lie.

    sum over k of w[p, (k + p) % 4] * x[b, q, k]   is   sum over k of w'[p, k] * x[b, q, k]   with   w'[p, k] = w[p, (k + p) % 4]

What is left is a product of matrices. The factor has few elements beside the points of the sum, or it stays where it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod

from jaxte.algebra.product import product_of
from jaxte.lang.divisions import Division, divisions
from jaxte.lang.expr import ZERO, Axis, Expr, Read, Reduce
from jaxte.lang.walk import depends_on, free_axes, reads_of, substitute
from jaxte.sets.intervals import dims_of, extent, extent_of
from jaxte.sets.resolved import simplify
from jaxte.tensors.bodies.range_checks import reads_inside
from jaxte.tensors.parts import PartialSum

_FEWER = 16  # times fewer elements than the sum has points
_ALWAYS = 4096  # elements that are laid out however few the tensor has
_MOST_COPIES = 8  # elements laid out for each of a larger one


def with_turned_factors(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, a sum at the points of ``axes``, with such factors as reads of tensors of their own."""
    if node.reducer.name != "sum":
        return node
    product = product_of(node.exprs[0], [node.where])
    if len(product.factors) < 2:
        return node
    every = prod(map(extent, dict.fromkeys((*axes, *node.axes))))
    table: dict[Expr, Expr] = {}
    for factor in product.factors:
        read = factor.expr
        if isinstance(read, Read) and not factor.guard and _turns(read, node):
            laid = _laid_out(read, every, name)
            table |= {} if laid is None else {read: laid}
    if not table:
        return node
    body = substitute(node.exprs[0], table)
    return Reduce(node.reducer, (body,), node.axes, node.where, node.position)


def _turns(read: Read, node: Reduce) -> bool:
    """Whether a remainder of several axes, around which the sum goes, is among the positions of ``read``.

    A sum that goes around a part of it has windows, which wrap: a convolution.
    """
    if any(reads_of(i) for i in read.indices):
        return False
    return any(_goes_around(d, node) for index in read.indices for d in divisions(index))


def _goes_around(division: Division, node: Reduce) -> bool:
    dims = dims_of(division.node)
    summed = [a for a in node.axes if depends_on(division.node, (a,))]
    return len(dims) > 1 and bool(summed) and prod(map(extent, summed)) >= (division.base or 0)


def _laid_out(read: Read, every: int, name: str) -> Read | None:
    axes = free_axes(read)
    if any(a.lo is not ZERO for a in axes):
        return None
    periods = {a: _period(a, read) for a in axes}
    fresh = [Axis(a.name, 0, periods[a] or a.hi) for a in axes]
    count, own = prod(map(extent, fresh)), prod(map(extent_of, read.tensor.shape))
    if count * _FEWER > every or count > max(_ALWAYS, _MOST_COPIES * own):
        return None
    body = substitute(read, dict(zip(axes, fresh, strict=True)))
    if not reads_inside(fresh, body):
        return None
    places = [a % period if (period := periods[a]) else a for a in axes]
    return Read(PartialSum(f"{name}_{read.tensor.name}", fresh, body), places)


def _period(axis: Axis, read: Read) -> int | None:
    """After how many positions of ``axis`` the same is read again; None where that is none of them."""
    bases = [d.base for d in divisions(*read.indices) if depends_on(d.node, (axis,))]
    period = lcm(*(b for b in bases if b))
    if not bases or None in bases or not 0 < period < extent(axis):
        return None
    place, turn = Axis(axis.name, 0, period), Axis("turn", 0, -(-extent(axis) // period))
    later = [simplify(i, {axis: place + period * turn}) for i in read.indices]
    return None if depends_on(Read(read.tensor, later), (turn,)) else period

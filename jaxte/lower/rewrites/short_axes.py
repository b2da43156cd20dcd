"""Axes of one value or of a few: positions as numbers, one after the other.

    S[i] = sum over p of |X[i, p] - X[i, (p + 1) % 3]|       three terms, of slices of X
    D[i, p] = f(X[i, (p + 1) % 3], X[i, (p + 2) % 3])        three arrays of slices of X, stacked
    G[i, c] = sum over p of X[I[i, p], c]                    three gathers, added
    B[i, c] = sum over p of |X[i, p, c] - Y[i, c]|           three terms: Y is not repeated
    U[i] = sum over p of select(p == 0, X[2 * i], Y[2 * i + p])   two terms, neither of them a choice

Otherwise X is copied once for each order in which it is read, and what is gathered exists before it is added. A loop over positions in the middle of an
array is a short one, too. An axis of one value is that value.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from jaxte.autodiff.terms.places import has_same_bits
from jaxte.lang.divisions import Remainder, division
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import ONE, TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import FEW
from jaxte.lang.operators import COMPARISONS, EQUAL, SELECT
from jaxte.lang.walk import (
    all_of,
    depends_on,
    free_axes,
    nodes_outside,
    postorder,
    reads_of,
    rewrite,
    substitute,
)
from jaxte.lower.arrays.products import OPS
from jaxte.lower.cost.general import is_contraction
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known


def at_unit_axes(body: Expr, axes: Sequence[Axis]) -> Expr:
    """``body`` at each point of ``axes``, written without needless axes of extent 1."""
    units: dict[Expr, Expr] = {axis: ZERO for axis in axes if axis.extent is ONE}
    if not units:
        return body
    table: dict[Expr, Expr] = {}
    for node in nodes_outside(body, (Read, Reduce)):
        if isinstance(node, Reduce):
            table[node] = substitute(node, units)
        elif isinstance(node, Read) and len(node.indices) == len(axes):
            table[node] = _kept(node, axes)
    return substitute(body, table)


def _kept(read: Read, axes: Sequence[Axis]) -> Expr:
    indices = [
        axis if axis.extent is ONE and index is ZERO and isinstance(extent, int) and extent == 1 else index
        for axis, index, extent in zip(axes, read.indices, read.tensor.shape, strict=True)
    ]
    return read if identical(indices, list(read.indices)) else Read(read.tensor, indices)


_NARROW = ("float16", "bfloat16")  # parts of a sum would be rounded one by one


def short_axes_apart(root: Expr, axes: Sequence[Axis]) -> Expr:
    """``root``, the body of a tensor over ``axes``, with sums over short axes and results over them in their positions."""
    sums = root.reduces
    body = rewrite(root, _added) if sums else root
    if body.reduces:
        return body  # a reduction for each position may be more than one over all of them, as groups of a convolution are
    for axis in axes:
        if is_short(axis) and len(_orders(body, axis)) > 1:
            return _stacked(body, axis)
    return body


def _added(node: Expr) -> Expr:
    """``node``, if it is a sum over a short axis that is read in several orders or at data, as a sum of its positions."""
    if not isinstance(node, Reduce) or not node.is_sum or node.dtype in _NARROW:
        return node
    (expr,) = node.exprs
    if expr.dtype != node.dtype or expr.weak or is_contraction(node):
        return node
    axis = next((a for a in node.axes if is_short(a) and _is_apart(expr, a)), None)
    return node if axis is None else written_out(node, (axis,))


def _is_apart(expr: Expr, axis: Axis) -> bool:
    """Whether the positions of ``axis`` lie apart.

    ``expr`` is gathered at them, reads them in some other order too, chooses by them, or has an operand with all other axes that is the same
    for all of them beside one in which they are not next to each other.
    """
    if any(
        isinstance(n, Call)
        and n.op is SELECT
        and free_axes(n.args[0]).keys() == {axis}
        and not reads_of(n.args[0])
        for n in postorder(expr)
    ):
        return True
    if isinstance(expr, Read):
        return any(depends_on(r, (axis,)) for i in expr.indices for r in reads_of(i))
    reads = reads_of(expr)
    if any(_mixes(index, axis) for read in reads for index in read.indices):
        return False  # a window, which has forms of its own
    own = [r for r in reads if any(depends_on(i, (axis,)) for i in r.indices)]
    between = all(r.indices and not depends_on(r.indices[-1], (axis,)) for r in own)
    others = set(free_axes(expr)) - {axis}
    # an array, not weights of rows
    repeated = any(others <= set(free_axes(r)) for r in reads if not among(r, own))
    return (bool(own) and between and repeated) or bool(_orders(expr, axis))


def _orders(expr: Expr, axis: Axis) -> set[Expr]:
    """The indices that read the positions of ``axis`` in another order."""
    indices = (index for read in reads_of(expr) for index in read.indices)
    return {i for i in indices if is_index(i) and _turns(postorder(i), axis)}


def _mixes(index: Expr, axis: Axis) -> bool:
    """Whether an index depends on ``axis`` and on another one."""
    free = free_axes(index)
    return axis in free and len(free) > 1 and not reads_of(index)


def _turns(nodes: Iterable[Expr], axis: Axis) -> bool:
    """Whether one of ``nodes`` is the positions of ``axis`` in another order: the remainder of them and of no other axis."""
    return any(
        isinstance(found := division(n), Remainder)
        and found.divisor is axis.hi
        and identical(list(free_axes(n)), [axis])
        for n in nodes
    )


def _stacked(body: Expr, axis: Axis) -> Expr:
    return chosen(axis, [substitute(body, {axis: Const(n)}) for n in range(int(axis.hi))])


def is_short(axis: Axis, most: int = FEW) -> bool:
    """Whether an axis from 0 has several positions, at ``most`` so many: those that are written out wherever that saves a loop or a copy."""
    return axis.lo is ZERO and 1 < (known(axis.hi) or 0) <= most


def few_positions(
    expr: Expr, reduced: Iterable[Axis], dims_of: Callable[[Expr], Iterable[Axis]]
) -> Axis | None:
    """The dimension among ``reduced`` over which a reduction of ``expr`` is written out, one position after the other.

    Args:
        expr: what is reduced.
        reduced: the dimensions that the reduction runs over.
        dims_of: the dimensions that an expression depends on.
    """
    every = set(dims_of(expr))
    short = [d for d in reduced if d in every and is_short(d)]
    if not short or isinstance(expr, (Read, Const)) or asks_rounded(expr):
        return None
    return None if any(set(dims_of(read)) == every for read in reads_of(expr)) else short[0]


def asks_rounded(expr: Expr) -> bool:
    """Whether ``expr`` compares what XLA rounds in another way at single positions than in a loop over all.

    Another part of a gradient may ask the same in a loop. The two have to agree where what is compared is nearly equal, as a product of a row with
    itself and its norms: what flows back to both cancels there.
    """
    asked = [n for n in all_of(Call, expr) if n.op in COMPARISONS]
    return not all(has_same_bits(a) for n in asked for a in n.args if is_inexact(a.dtype))


def term_at(node: Reduce, table: Mapping[Expr, Expr]) -> Expr:
    """What ``node`` reduces where its axes are those of ``table``: over the other axes, if there are any."""
    rest = [a for a in node.axes if a not in table]
    expr, where = substitute(node.exprs[0], table), substitute(node.where, table)
    if rest:
        return node.changed(exprs=(expr,), axes=rest, where=where)
    return expr if where is TRUE else call(SELECT, where, expr, node.reducer.identity[0])


def terms_of(node: Reduce, axes: Collection[Axis]) -> list[Expr]:
    """``node`` at each position of those of its axes that are among ``axes``, whose ranges are known."""
    short = [a for a in node.axes if among(a, axes)]
    points = itertools.product(*(range(known(a.lo) or 0, known(a.hi) or 0) for a in short))
    return [term_at(node, dict(zip(short, map(Const, point), strict=True))) for point in points]


def together(node: Reduce, terms: Iterable[Expr]) -> Expr:
    """``terms`` as ``node`` reduces them, one after the other."""
    op = OPS[node.reducer.name]
    return functools.reduce(lambda a, b: call(op, a, b), terms)


def written_out(node: Reduce, axes: Collection[Axis]) -> Expr:
    """``node`` with one term for each position of those of its axes that are among ``axes``."""
    return together(node, terms_of(node, axes))


def chosen(axis: Axis, values: Sequence[Expr]) -> Expr:
    """The one of ``values`` whose number is the position of ``axis``."""
    *before, last = values
    for position in reversed(range(len(before))):
        last = call(SELECT, call(EQUAL, axis, Const(position)), before[position], last)
    return last

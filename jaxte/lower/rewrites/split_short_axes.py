"""Axes of a few positions that are read in another order too, or at positions that are data: one position after the other.

    S[i] = sum over p of |X[i, p] - X[i, (p + 1) % 3]|       three terms, of slices of X
    D[i, p] = f(X[i, (p + 1) % 3], X[i, (p + 2) % 3])        three arrays of slices of X, stacked
    G[i, c] = sum over p of X[I[i, p], c]                    three gathers, added
    B[i, c] = sum over p of |X[i, p, c] - Y[i, c]|           three terms: Y is not repeated

Otherwise X is copied once for each order, and what is gathered exists before it is added. A loop over positions in the middle of an array
is a short one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import Axis, Const, Expr, Read, Reduce
from jaxte.lang.identity import identical
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, rewrite, substitute
from jaxte.lower.cost.default_work import is_contraction
from jaxte.lower.rewrites.unroll import chosen, is_short, written_out
from jaxte.sets.index_forms import is_index

_NARROW = ("float16", "bfloat16")  # parts of a sum would be rounded one by one


def short_axes_apart(root: Expr, axes: Sequence[Axis]) -> Expr:
    """``root``, the body of a tensor over ``axes``, with sums over short axes and results over them in their positions."""
    sums = any(isinstance(node, Reduce) for node in postorder(root))
    body = rewrite(root, _added) if sums else root
    if any(isinstance(node, Reduce) for node in postorder(body)):
        return body  # a reduction for each position may be more than one over all of them, as groups of a convolution are
    for axis in axes:
        if is_short(axis) and len(_orders(body, axis)) > 1:
            return _stacked(body, axis)
    return body


def _added(node: Expr) -> Expr:
    """``node``, if it is a sum over a short axis that is read in several orders or at data, as a sum of its positions."""
    if not isinstance(node, Reduce) or node.reducer.name != "sum" or node.dtype in _NARROW:
        return node
    (expr,) = node.exprs
    if expr.dtype != node.dtype or expr.weak or is_contraction(node):
        return node
    axis = next((a for a in node.axes if is_short(a) and _is_apart(expr, a)), None)
    return node if axis is None else written_out(node, (axis,))


def _is_apart(expr: Expr, axis: Axis) -> bool:
    """Whether the positions of ``axis`` lie apart.

    ``expr`` is gathered at them, reads them in some other order too, or has an operand that is the same for all of
    them beside one in which they are not next to each other.
    """
    if isinstance(expr, Read):
        return any(depends_on(r, (axis,)) for i in expr.indices for r in reads_of(i))
    reads = reads_of(expr)
    if any(_mixes(index, axis) for read in reads for index in read.indices):
        return False  # a window, which has forms of its own
    own = [r for r in reads if any(depends_on(i, (axis,)) for i in r.indices)]
    between = all(r.indices and not depends_on(r.indices[-1], (axis,)) for r in own)
    return (0 < len(own) < len(reads) and between) or bool(_orders(expr, axis))


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

"""Axes of sums that are digits of one number, and numbers of which digits are read, as what the terms are read at.

    sum over u, r of x[16 * i + 16 * u + r] * C[16 * u + r]     is   sum over t of x[16 * i + t] * C[t]
    sum over f of x[i + f // 8, f % 8] * w[f // 8, f % 8]       is   sum over k, c of x[i + k, c] * w[k, c]

Both are the same points; as what they are read at, sums are recognised as convolutions, windows and products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import ZERO, Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.operators import FLOOR_DIVIDE, MOD
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, rewrite, substitute
from jaxte.planning.contraction import MOST_AXES
from jaxte.sets.affine import normal
from jaxte.sets.conditions import nonnegative_forms


def with_whole_axes(node: Reduce) -> Reduce:
    """``node``, a sum, over axes of which no two are digits of what is read, and of none of which digits are read."""
    if node.reducer.name != "sum" or any(isinstance(n, Reduce) for n in postorder(*node.exprs)):
        return node
    whole = _repeated(node, _joined)
    apart = _repeated(whole, _apart)
    return apart if len(apart.axes) <= MOST_AXES else whole


def _repeated(node: Reduce, attempts: Callable[[Reduce], Iterator[Reduce | None]]) -> Reduce:
    """``node`` by the first of ``attempts`` that succeeds, as long as one does."""
    found: Reduce | None = node
    while found is not None:
        node, found = found, next((made for made in attempts(found) if made is not None), None)
    return node


def _joined(node: Reduce) -> Iterator[Reduce | None]:
    """Two axes as one: ``t`` for ``n * high + low``, if nothing else depends on them."""
    for high, low in permutations(node.axes, 2):
        n = _extent(low)
        if n is None or _extent(high) is None or n < 2 or not _stand_together(node, high, low):
            continue
        start = n * high.lo + low.lo
        whole = Axis(low.name, normal(start), normal(n * (high.hi - 1) + low.hi), reduction=True)
        made = _over(node, {low: whole - n * high}, {high: (), low: (whole,)})
        yield None if made is None or _depends(made, high) else made


def _stand_together(node: Reduce, high: Axis, low: Axis) -> bool:
    """Whether no index of sums of axes has one of them without the other, which would remain."""
    for index in (i for read in reads_of(*node.exprs) for i in read.indices):
        free = free_axes(index)
        if (high in free) != (low in free) and not any(
            isinstance(n, Call) and n.op in (FLOOR_DIVIDE, MOD) for n in postorder(index)
        ):
            return False
    return True


def _apart(node: Reduce) -> Iterator[Reduce | None]:
    """An axis as two digits, where its quotients and remainders by a number are what is read."""
    for axis in node.axes:
        whole = _extent(axis)
        for n in _divisors(node, axis) if whole is not None and axis.lo is ZERO else ():
            if whole is None or whole % n or not 1 < n < whole:
                continue
            high = Axis(f"{axis.name}_high", 0, whole // n, reduction=True)
            low = Axis(f"{axis.name}_low", 0, n, reduction=True)
            table: dict[Expr, Expr] = {axis: n * high + low}
            table |= {call(FLOOR_DIVIDE, axis, Const(n)): high, call(MOD, axis, Const(n)): low}
            made = _over(node, table, {axis: (high, low)})
            yield None if made is None or any(_divides(made, a) for a in (high, low)) else made


def _extent(axis: Axis) -> int | None:
    extent = axis.extent
    return int(extent) if isinstance(extent, Const) else None


def _depends(node: Reduce, axis: Axis) -> bool:
    return depends_on(node.exprs[0], (axis,)) or depends_on(node.where, (axis,))


def _divisors(node: Reduce, axis: Axis) -> list[int]:
    """The numbers by which indices of ``axis`` are divided."""
    return sorted(
        {
            int(n.args[1])
            for n in postorder(*node.exprs, node.where)
            if isinstance(n, Call)
            and n.op in (FLOOR_DIVIDE, MOD)
            and isinstance(n.args[1], Const)
            and axis in free_axes(n.args[0])
            and not reads_of(n)
        }
    )


def _divides(node: Reduce, axis: Axis) -> bool:
    return bool(_divisors(node, axis))


def _over(node: Reduce, table: dict[Expr, Expr], instead: dict[Axis, tuple[Axis, ...]]) -> Reduce | None:
    """``node`` with axes replaced; None where an index has no normal form."""
    try:
        expr, where = (_straightened(substitute(e, table)) for e in (node.exprs[0], node.where))
    except IndexExpressionError:
        return None
    axes = [a for own in node.axes for a in instead.get(own, (own,))]
    return Reduce(node.reducer, (expr,), axes, where, node.position)


def _straightened(expr: Expr) -> Expr:
    """``expr`` with its indices and conditions on positions in normal form."""

    def rule(node: Expr) -> Expr:
        match node:
            case Read(tensor, indices) if not any(map(reads_of, indices)):
                return Read(tensor, [normal(i) for i in indices])
            case Call(op, (left, right)) if nonnegative_forms(node) and not reads_of(node):
                return call(op, normal(left - right), Const(0))
        return node

    return rewrite(expr, rule)

"""Tables before what is read of them: sums over all rows of a small table, among which data choose.

    sum over c of e[seq[n, l], c] * w[c, o]    is    p[seq[n, l], o]    with    p[k, o] = sum over c of e[k, c] * w[c, o]

where the table ``e`` has fewer rows than there are positions that read one: the product is taken of all rows once, and data choose among the results. What
the sum is multiplied by or made of otherwise stays outside of it; positions out of range have no row in either spelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEWER
from jaxte.lang.operators import ADD, DIVIDE, MAXIMUM, MINIMUM, MULTIPLY, POWER, SELECT, SUBTRACT
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.planning.orders.contraction import EXACT
from jaxte.sets.intervals import at_most, extent, known
from jaxte.tensors.structure import PartialSum

# of two operands, NaN where one of them is; all functions of one operand are
_SPOILT = (ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM)


def with_tables_first(node: Reduce, name: str) -> Expr:
    """``node``, or the element that data choose among sums over all rows of what it reads at data."""
    if not node.is_sum or node.dtype not in EXACT or node.where is not TRUE:
        return node
    (body,) = node.exprs
    chosen = [r for r in reads_of(body) if any(map(reads_of, r.indices))]
    if not chosen or body.reduces:
        return node
    place = _place(chosen, node.axes)
    if place is None or not _is_nan_without_rows(body, chosen, node.axes):
        return node
    data, rows = place
    row = Axis("row", 0, rows)
    table: dict[Expr, Expr] = {
        r: Read(r.tensor, [row if i is data else i for i in r.indices]) for r in chosen
    }
    inner = substitute(body, table)
    others = [a for a in free_axes(inner) if a is not row and not among(a, node.axes)]
    if not _has_fewer_rows(data, others, rows):
        return node
    own = [Axis(a.name, 0, a.extent) for a in others]
    reduced = [Axis(a.name, a.lo, a.hi, reduction=True) for a in node.axes]
    new: dict[Expr, Expr] = {a: b + a.lo for a, b in zip(others, own, strict=True)}
    new |= dict(zip(node.axes, reduced, strict=True))
    total = node.changed(exprs=(substitute(inner, new),), axes=reduced, where=TRUE)
    part = PartialSum(f"{name}_rows", [row, *own], total)
    return Read(part, [data, *(a - a.lo for a in others)])


def _place(chosen: Sequence[Read], axes: Sequence[Axis]) -> tuple[Expr, int] | None:
    """The index that all of ``chosen`` have in place of a position that is known, and how many rows there are; None where they differ in it."""
    found: list[tuple[Expr, int]] = []
    for read in chosen:
        own = [(i, e) for i, e in zip(read.indices, read.tensor.shape, strict=True) if reads_of(i)]
        if len(own) != 1 or depends_on(own[0][0], axes) or not is_inexact(read.tensor.dtype):
            return None
        rows = known(as_expr(own[0][1]))
        if rows is None:
            return None
        found.append((own[0][0], rows))
    return found[0] if all(i is found[0][0] and n == found[0][1] for i, n in found) else None


def _is_nan_without_rows(body: Expr, chosen: Sequence[Read], axes: Sequence[Axis]) -> bool:
    """Whether a sum of ``body`` is NaN where no row is there for ``chosen``, as an element that is read out of range is: comparisons and choices may go on without."""
    spoilt: dict[Expr, bool] = {}
    for node in postorder(body):
        below = [spoilt[child] for child in node.children]
        match node:
            case Read():
                spoilt[node] = among(node, chosen)
            case Call(op, (_, Const(exponent))) if op is POWER:
                spoilt[node] = below[0] and exponent != 0
            case Call(op, _) if op is SELECT:
                spoilt[node] = all(below[1:])
            case Call(op, _):
                spoilt[node] = any(below) and is_inexact(node.dtype) and (len(below) == 1 or op in _SPOILT)
            case _:
                spoilt[node] = False
    return spoilt[body] and all(at_most(as_expr(1), a.extent) for a in axes)


def _has_fewer_rows(data: Expr, others: Sequence[Axis], rows: int) -> bool:
    """Whether there are few rows for the positions that choose one, of which nothing else in the sum depends."""
    own = list(free_axes(data))
    return not any(among(a, others) for a in own) and rows * FEWER <= prod(map(extent, own))

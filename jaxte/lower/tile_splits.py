"""Reductions in two steps: over all axes but one, and then over that one."""

from __future__ import annotations

from jaxte.expr import TRUE, Axis, Expr, Read, Reduce, call
from jaxte.operators import SELECT
from jaxte.tensor import Compute
from jaxte.walk import substitute


def outermost(body: Expr) -> list[Reduce]:
    found: list[Reduce] = []
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Reduce):
            found.append(node)
        else:
            stack.extend(reversed(node.children))
    return found


def split_over(tensor: Compute, node: Reduce, axis: Axis) -> tuple[Compute, Compute]:
    """The reduction ``node`` over ``axis`` as that of a tensor with that axis, in which the others are reduced."""
    own = Axis(axis.name, 0, axis.extent)
    outer = [Axis(a.name, a.lo, a.hi) for a in tensor.axes]
    table: dict[Expr, Expr] = dict(zip(tensor.axes, outer, strict=True))
    table[axis] = own + axis.lo
    body, where = substitute(node.exprs[0], table), substitute(node.where, table)
    rest = tuple(a for a in node.axes if a is not axis)
    if rest:
        body = Reduce(node.reducer, (body,), rest, where)
    elif where is not TRUE:
        body = call(SELECT, where, body, node.reducer.identity[0])
    parts = Compute(f"{tensor.name}_{axis.name}", (own, *outer), body)
    last = Axis(axis.name, 0, axis.extent, reduction=True)
    whole = Reduce(node.reducer, (Read(parts, (last, *tensor.axes)),), (last,), TRUE)
    return parts, Compute(tensor.name, tensor.axes, substitute(tensor.body, {node: whole}))

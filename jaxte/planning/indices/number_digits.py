"""Definitions over numbers of which digits are read, as definitions over the digits: flat indices, as programs with loops have them.

    y[f] = sum over c of x[f // 96, f // 8 % 12, c] * w[c, f % 8]     is     y[f] = z[f // 96, f // 8 % 12, f % 8]
    with                                                                     z[i, j, o] = sum over c of x[i, j, c] * w[c, o]

which is a reshape of a product of matrices.
"""

from __future__ import annotations

from jaxte.lang.expr import Expr, Read, Reduce
from jaxte.lang.walk import postorder, rewrite
from jaxte.sets.digits import at_digits, number_of
from jaxte.tensors.tensor import Compute


class Digits(Compute):
    """A tensor over the digits of an axis of another one."""

    __slots__ = ()


def over_digits(tensor: Compute) -> tuple[Digits, Read] | None:
    """A tensor over the digits of the axes of ``tensor``, and its element that an element of ``tensor`` is; None where few digits are read, or no sum is."""
    if tensor.override is not None or isinstance(tensor, Digits):
        return None
    if not any(isinstance(n, Reduce) for n in postorder(tensor.body)):
        return None
    numbers = [number_of(axis, [tensor.body]) for axis in tensor.axes]
    table: dict[Expr, Expr] = {n.axis: n.whole for n in numbers if n.is_taken_apart}
    if not table:
        return None
    axes = [digit for number in numbers for digit in number.digits]
    indices = [index for number in numbers for index in number.indices]
    part = Digits(f"{tensor.name}_digits", axes, at_digits(tensor.body, table))
    return part, Read(part, indices)


def with_digit_axes(body: Expr) -> Expr:
    """``body`` with its sums over digits of the axes that they read more than two digits of."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce) or not node.reducer.ignores_order:
            return node
        numbers = [number_of(axis, [*node.exprs, node.where]) for axis in node.axes]
        table: dict[Expr, Expr] = {n.axis: n.whole for n in numbers if n.is_taken_apart}
        if not table:
            return node
        axes = [digit for number in numbers for digit in number.digits]
        exprs = [at_digits(e, table) for e in node.exprs]
        return Reduce(node.reducer, exprs, axes, at_digits(node.where, table), node.position)

    return rewrite(body, rule)

"""Definitions over numbers of which digits are read, as definitions over the digits: flat indices, as programs with loops have them.

    y[f] = sum over c of x[f // 96, f // 8 % 12, c] * w[c, f % 8]     is     y[f] = z[f // 96, f // 8 % 12, f % 8]
    with                                                                     z[i, j, o] = sum over c of x[i, j, c] * w[c, o]

which is a reshape of a product of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.expr import Axis, Const, Expr, Read, Reduce, call
from jaxte.lang.identity import among
from jaxte.lang.operators import FLOOR_DIVIDE, MOD
from jaxte.lang.walk import postorder, rewrite
from jaxte.sets.digits import at_digits, digits_of, weights_of, whole
from jaxte.tensors.tensor import Compute

_MANY = 3  # digits of a number; two are met by forms as they stand


class Digits(Compute):
    """A tensor over the digits of an axis of another one."""

    __slots__ = ()


def over_digits(tensor: Compute) -> tuple[Digits, Read] | None:
    """A tensor over the digits of the axes of ``tensor``, and its element that an element of ``tensor`` is; None where few digits are read, or no sum is."""
    if tensor.override is not None or isinstance(tensor, Digits):
        return None
    if not any(isinstance(n, Reduce) for n in postorder(tensor.body)):
        return None
    table: dict[Expr, Expr] = {}
    axes: list[Axis] = []
    indices: list[Expr] = []
    for axis in tensor.axes:
        weights = weights_of(axis, [tensor.body])
        if len(weights) < _MANY:
            axes.append(axis)
            indices.append(axis)
            continue
        digits = digits_of(axis, weights)
        table[axis] = whole(digits, weights)
        axes += digits
        indices += _digits(axis, digits, weights)
    if not table:
        return None
    part = Digits(f"{tensor.name}_digits", axes, at_digits(tensor.body, table))
    return part, Read(part, indices)


def _digits(axis: Axis, digits: Sequence[Axis], weights: Sequence[int]) -> list[Expr]:
    """``axis // 96``, ``axis // 8 % 12``, ``axis % 8``."""
    found: list[Expr] = []
    for n, (digit, weight) in enumerate(zip(digits, weights, strict=True)):
        own: Expr = axis if weight == 1 else call(FLOOR_DIVIDE, axis, Const(weight))
        found.append(own if n == 0 else call(MOD, own, digit.extent))
    return found


def with_digit_axes(body: Expr) -> Expr:
    """``body`` with its sums over digits of the axes that they read more than two digits of."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Reduce) or not node.reducer.ignores_order:
            return node
        table: dict[Expr, Expr] = {}
        axes: list[Axis] = []
        for axis in node.axes:
            weights = weights_of(axis, [*node.exprs, node.where])
            digits = digits_of(axis, weights) if len(weights) >= _MANY else [axis]
            if not among(axis, digits):
                table[axis] = whole(digits, weights)
            axes += digits
        if not table:
            return node
        exprs = [at_digits(e, table) for e in node.exprs]
        return Reduce(node.reducer, exprs, axes, at_digits(node.where, table), node.position)

    return rewrite(body, rule)

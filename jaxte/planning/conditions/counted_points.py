"""Reductions over the points that count, however their conditions and axes are spelled.

    sum over k of select(k // 4 == i, x[b, k], 0) * w[k]                       is   sum over r of x[b, 4 * i + r] * w[4 * i + r]
    max over h, l of x[b, 2 * h + l] where i <= 2 * h + l and 2 * h + l < i + 5   is   max over r of x[b, i + r], r in [0, 5)

Choices between a value and zero are conditions, equations are solved, axes end where conditions on them say so and are what the terms are read at,
and bounds that move with the result are windows. Each step sees what the one before has found.
"""

from __future__ import annotations

from jaxte.algebra.product import may_be_infinite, multiplied, product_of
from jaxte.lang.expr import Call, Const, Expr, Reduce, call, conjunction, conjuncts
from jaxte.lang.operators import AND, NOT, SELECT
from jaxte.lang.walk import reads_of
from jaxte.planning.conditions.equations import with_equations_solved
from jaxte.planning.conditions.moving_windows import with_windows
from jaxte.planning.conditions.tight_axes import with_tight_axes
from jaxte.planning.indices.digits import with_whole_axes
from jaxte.sets.conditions import positive
from jaxte.sets.isl_text import is_decidable


def at_counted_points(node: Reduce) -> tuple[Expr, Expr]:
    """A condition and a value: ``node`` is the value where it holds, and the identity of the reduction elsewhere.

    A choice in a product of several tensors is a condition only where that leaves fewer points to count: what it leaves out may be infinite,
    and would be multiplied by zero where the condition becomes a mask of one factor.
    """
    chosen = _with_choices_as_conditions(node)
    if chosen is not node:
        outside, value, fewer = _counted(chosen)
        if fewer or node.reducer.name != "sum" or len(reads_of(chosen.exprs[0])) < 2:
            return outside, value
    outside, value, _ = _counted(node)
    return outside, value


def _counted(node: Reduce) -> tuple[Expr, Expr, bool]:
    """The condition, the value, and whether an equation or a window leaves fewer points than ``node`` is written over."""
    outside, solved = with_equations_solved(node)
    if not isinstance(solved, Reduce):
        return outside, solved, True
    whole = with_whole_axes(with_tight_axes(solved))
    windows = with_windows(whole)
    if windows is whole:
        return outside, whole, solved is not node
    return outside, with_whole_axes(windows), True


def _with_choices_as_conditions(node: Reduce) -> Reduce:
    """A reduction of choices between a value and its identity, zero of a sum, as one of the value where it is chosen, if positions decide that."""
    if not node.reducer.ignores_order:
        return node
    where, expr = _chosen(node.where, node.exprs[0], node.reducer.identity[0])
    product = product_of(expr)
    if node.reducer.name == "sum" and product.guards and not any(map(may_be_infinite, product.factors)):
        value = multiplied(product.factors)
        if (value.dtype, value.weak) == (expr.dtype, expr.weak):
            where, expr = conjunction([*conjuncts(where), *map(positive, product.guards)]), value
    return node if expr is node.exprs[0] else Reduce(node.reducer, (expr,), node.axes, where, node.position)


def _chosen(where: Expr, expr: Expr, identity: Expr) -> tuple[Expr, Expr]:
    """``where`` with the tests of the choices that all of ``expr`` is, and what is chosen."""
    while isinstance(expr, Call) and expr.op is SELECT:
        test, taken, other = expr.args
        if _is(taken, identity):
            test, taken, other = call(NOT, test), other, taken
        if not _is(other, identity) or taken.dtype != expr.dtype or not is_decidable(test):
            break
        where, expr = call(AND, where, positive(test)), taken
    return where, expr


def _is(expr: Expr, identity: Expr) -> bool:
    return isinstance(expr, Const) and isinstance(identity, Const) and expr.value == identity.value

"""What choices do not depend on is summed inside of them: matrix products in place of a choice at every point.

    sum over k, o of select(x[b, i] < k, -(g[b, o] * c[i, o, k]), g[b, o] * c[i, o, k]) where abs(x[b, i] - k) < 1
    is   sum over k of select(x[b, i] < k, -1, 1) * T[b, i, k] where abs(x[b, i] - k) < 1   with   T[b, i, k] = sum over o of g[b, o] * c[i, o, k]

The derivative of a function with kinks is such a choice. It has no value to give for ``o``, so ``o`` is summed first, by a product of matrices,
and the choice is made of the results, a fraction of the points.
"""

from __future__ import annotations

from math import prod

from jaxte.algebra.product import (
    Factor,
    Product,
    in_common,
    is_zero,
    may_be_infinite,
    multiplied,
    product_of,
    without,
)
from jaxte.lang import dtypes
from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce, call
from jaxte.lang.limits import LEVELS, SHORTEST_PRODUCT
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on, free_axes, postorder
from jaxte.sets.intervals import extent


def with_shared_branches(product: Product) -> Product:
    """``product`` with what all branches of a choice are multiplied by as factors beside it."""
    found: list[Factor] = []
    for factor in product.factors:
        choice = factor.expr
        if factor.inverse or not (isinstance(choice, Call) and choice.op is SELECT):
            found.append(factor)
            continue
        found += _shared(choice, LEVELS)
    return Product(tuple(found), product.guards)


def _shared(choice: Call, deepest: int) -> list[Factor]:
    """``choice`` as a product: what is left of it, and what its branches have in common."""
    test, *branches = choice.args
    parts = [_factors(branch, deepest - 1) for branch in branches]
    if any(is_zero(branch) for branch in branches):
        (rest,) = [p for branch, p in zip(branches, parts, strict=True) if not is_zero(branch)] or [[]]
        shared = [f for f in rest if isinstance(f.expr, Read) and not may_be_infinite(f)]
    else:
        shared = [f for f in in_common(parts) if free_axes(f.expr)]
    if not shared:
        return [Factor(choice)]
    left = [
        branch if is_zero(branch) else multiplied(without(own, shared))
        for branch, own in zip(branches, parts, strict=True)
    ]
    return [Factor(call(SELECT, test, *left)), *shared]


def _factors(expr: Expr, deepest: int) -> list[Factor]:
    found: list[Factor] = []
    for factor in product_of(expr, whole=True).factors:
        inner = factor.expr
        nested = isinstance(inner, Call) and inner.op is SELECT and not factor.inverse and deepest > 0
        found += _shared(inner, deepest) if nested and isinstance(inner, Call) else [factor]
    return found


def summed_inside(product: Product, node: Reduce) -> tuple[Axis, ...]:
    """The axes of ``node`` that no choice of ``product`` depends on, if what is summed over them is a product of matrices; none otherwise."""
    choices = [f.expr for f in product.factors if f.guard or _is_choice(f.expr)]
    if not choices or not dtypes.is_inexact(node.dtype):
        return ()
    tests = [*choices, *product.guards]
    inside = tuple(
        a
        for a in node.axes
        if not depends_on(node.where, (a,)) and not any(depends_on(e, (a,)) for e in tests)
    )
    own = [f for f in product.factors if depends_on(f.expr, inside)]
    if len(inside) in (0, len(node.axes)) or prod(map(extent, inside)) < SHORTEST_PRODUCT:
        return ()
    outer = {a for f in own for a in free_axes(f.expr)} - set(inside)
    # each operand lacks an axis that another one has, so that what they are summed to is a product of matrices
    return inside if own and all(outer - set(free_axes(f.expr)) for f in own) else ()


def _is_choice(expr: Expr) -> bool:
    return any(isinstance(n, Call) and n.op is SELECT for n in postorder(expr))

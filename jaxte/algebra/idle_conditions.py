"""Conditions that a factor says already: ``sum where h[i] != 0 of h[i] * x[i, k]`` is the sum of all ``h[i] * x[i, k]``.

What is zero passes nothing on: where an element of a head flows through a function whose slope may not be finite, its sum has this condition. What else is
in the sum of an adjoint may be finite all the same, and then a zero adds nothing by itself. Without the condition the sum is a product of arrays as they are.
"""

from __future__ import annotations

from jaxte.algebra.product import Product, is_zero, may_spoil, product_of
from jaxte.lang.expr import TRUE, Call, Expr, Reduce, conjunction, conjuncts
from jaxte.lang.operators import NONZERO
from jaxte.lang.walk import reductions, substitute


def without_idle_conditions(body: Expr) -> Expr:
    """``body`` with its sums free of conditions that a factor says, beside factors that stay finite."""
    table: dict[Expr, Expr] = {
        node: found for node in reductions(body) if (found := _freed(node)) is not node
    }
    return substitute(body, table) if table else body


def of_factors(conditions: list[Expr], product: Product) -> list[Expr]:
    """Those of ``conditions`` that say that a factor of ``product`` is not zero."""
    factors = {f.expr for f in product.factors if not f.inverse and not f.guard}
    return [
        c
        for c in conditions
        if isinstance(c, Call) and c.op is NONZERO and is_zero(c.args[1]) and c.args[0] in factors
    ]


def _freed(node: Reduce) -> Reduce:
    if not node.is_sum or node.where is TRUE:
        return node
    conditions = conjuncts(node.where)
    idle = _idle(conditions, product_of(node.exprs[0]))
    kept = [c for c in conditions if c not in idle]
    return node if not idle else node.changed(where=conjunction(kept))


def _idle(conditions: list[Expr], product: Product) -> set[Expr]:
    """Those beside whose factors no other may be infinite or NaN."""
    return {
        c
        for c in of_factors(conditions, product)
        if not any(may_spoil(f) for f in product.factors if f.inverse or f.expr is not c.children[0])
    }

"""Conditions that a factor says already: ``sum where h[i] != 0 of h[i] * x[i, k]`` is the sum of all ``h[i] * x[i, k]``.

What is zero passes nothing on: where an element of a head flows through a function whose slope may not be finite, its sum has this condition. What else is
in the sum of an adjoint may be finite all the same, and then a zero adds nothing by itself. Without the condition the sum is a product of arrays as they are.
"""

from __future__ import annotations

from jaxte.algebra.product import Product, is_zero, may_spoil, product_of
from jaxte.lang.expr import Call, Expr, Reduce, conjunction, conjuncts
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
    if not node.is_sum:
        return node
    conditions = conjuncts(node.where)
    product = product_of(node.exprs[0])
    idle = {
        c
        for c in of_factors(conditions, product)
        if not any(map(may_spoil, (f for f in product.factors if f.expr is not c.args[0])))
    }
    return node.changed(where=conjunction([c for c in conditions if c not in idle])) if idle else node

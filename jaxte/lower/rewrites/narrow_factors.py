"""Factors over fewer axes are multiplied with each other first, and what is as large as the result once with all of them.

    h[b, i - 1, j] * 0.1 / (2 * c[i - 1]) * (c[i] + c[i - 1])    is    h[b, i - 1, j] * (0.1 / (2 * c[i - 1]) * (c[i] + c[i - 1]))

with one product for each element in place of two and a division. Adjoints of stencils with coefficients have such a term for each neighbour.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.algebra.sums import weight
from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce
from jaxte.lang.operators import DIVIDE, MULTIPLY, NEGATIVE
from jaxte.lang.walk import free_axes, nodes_outside, substitute

_EXACT = ("float32", "float64", "complex64", "complex128")  # others would be rounded elsewhere
_PRODUCTS = (MULTIPLY, DIVIDE, NEGATIVE)
_WORTH = 8  # operations for each element, below which the order stays the one that was written


def with_narrow_factors_first(body: Expr, axes: Sequence[Axis]) -> Expr:
    """``body``, that of a tensor over ``axes``, with its products of factors over all and over fewer of them in that order."""
    if body.reduces:
        return body
    nodes = nodes_outside(body, (Read, Reduce))
    products = [n for n in nodes if isinstance(n, Call) and n.op in _PRODUCTS]
    within = {c for n in products for c in n.args}
    table: dict[Expr, Expr] = {}
    for node in products:
        if node not in within and node.dtype in _EXACT and not node.weak:
            found = _narrow_first(node, axes)
            if found.dtype == node.dtype and not found.weak:
                table[node] = found
    if not table:
        return body
    new = substitute(body, table)
    return new if _work(new, axes) + _WORTH <= _work(body, axes) else body


def _narrow_first(node: Expr, axes: Sequence[Axis]) -> Expr:
    product = product_of(node, whole=True)
    wide = [f for f in product.factors if _is_wide(f.expr, axes)]
    narrow = [f for f in product.factors if not _is_wide(f.expr, axes)]
    if product.is_conditional or not any(not f.inverse for f in wide) or len(narrow) < 2:
        return node
    return multiplied([*wide, Factor(multiplied(narrow))])


def _is_wide(expr: Expr, axes: Sequence[Axis]) -> bool:
    return len(free_axes(expr).keys() & set(axes)) == len(axes)


def _work(body: Expr, axes: Sequence[Axis]) -> int:
    """Operations for each element."""
    nodes = nodes_outside(body, (Read, Reduce))
    return sum(weight(n) for n in nodes if isinstance(n, Call) and _is_wide(n, axes))

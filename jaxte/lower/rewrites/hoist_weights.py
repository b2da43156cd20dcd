"""Sums of products with what is gathered, each with a weight of its own: ``sum over c of (a[i] * G[i, c] * X[I[i], c] + b[i] * ...)``.

The weights leave the sums, which are then of products of two arrays. Adjoints of positions between elements (bilinear reads) are several
such sums with other weights: what is left of them is the same, so that it is computed once.
"""

from __future__ import annotations

from jaxte.lang.expr import TRUE, Expr, Reduce
from jaxte.lang.walk import depends_on, reads_of, rewrite
from jaxte.lower.limits import MOST_TERMS
from jaxte.lower.match.product import Factor, multiplied, product_of, split_outer
from jaxte.lower.match.sums import Signed, added, signed_terms

_NARROW = ("float16", "bfloat16")  # parts of a sum would be rounded one by one


def with_weights_outside(root: Expr) -> Expr:
    """``root`` with the weights of gathered products outside of the sums."""
    return rewrite(root, _apart)


def _apart(node: Expr) -> Expr:
    if not isinstance(node, Reduce) or node.reducer.name != "sum" or node.where is not TRUE:
        return node
    if node.dtype in _NARROW:
        return node
    terms = signed_terms(node.exprs[0], negated=True)
    if not 1 < len(terms) <= MOST_TERMS:
        return node
    parts: list[Signed] = []
    for term, sign in terms:
        own = _weighted(term, node)
        if own is None:
            return node
        parts.append((own, sign))
    total = added(parts)
    return node if total.dtype != node.dtype or total.weak else total


def _weighted(term: Expr, node: Reduce) -> Expr | None:
    """The sum of ``term`` with its weight outside; None where it has none, or nothing gathered."""
    product = product_of(term)
    outer, inner = split_outer(product.factors, node.axes)
    guards = [f for f in product.factors if f.guard]
    if product.guards or any(depends_on(f.expr, node.axes) for f in guards):
        return None
    outer, inner = [f for f in outer if not f.guard], [f for f in inner if not f.guard]
    above = [f for f in inner if not f.inverse]
    if not outer or len(above) < 2 or not any(map(_is_gathered, above)):
        return None
    kept = multiplied(inner)
    if kept.dtype != node.dtype or kept.weak:
        return None
    sums = Reduce(node.reducer, (kept,), node.axes, TRUE)
    return multiplied([*outer, Factor(sums)], [f.expr for f in guards])


def _is_gathered(factor: Factor) -> bool:
    return any(reads_of(index) for read in reads_of(factor.expr) for index in read.indices)

"""Sums whose terms have factors in common that the summation does not touch: ``sum over k of (A[i-k]*x[i] + B[i-k]*x[i])``.

The common factors leave the sum, ``x[i] * sum over k of (A[i-k] + B[i-k])``, and what is left may be a window of one array. Adjoints
of squares are of this kind, with two equal terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxte.lang.expr import Const, Expr, Reduce
from jaxte.lang.walk import depends_on
from jaxte.lower.limits import MOST_TERMS
from jaxte.lower.match.product import Factor, multiplied, product_of
from jaxte.lower.match.sums import signed_terms


def with_common_factors(node: Reduce) -> Reduce:
    """``node`` with the common factors of its terms multiplied to what is left of them; as it is where there are none."""
    if node.reducer.name != "sum":
        return node
    terms = signed_terms(node.exprs[0])
    if not 1 < len(terms) <= MOST_TERMS:
        return node
    products = [product_of(term) for term, _ in terms]
    if any(p.guards or any(f.guard for f in p.factors) for p in products):
        return node
    common = Counter(f for f in products[0].factors if not depends_on(f.expr, node.axes))
    for product in products[1:]:
        common &= Counter(product.factors)
    shared = [f for f in common.elements() if not isinstance(f.expr, Const)]
    if not shared:
        return node
    rests = [multiplied(without(p.factors, shared)) for p in products]
    body = multiplied([*(f for f in shared if not f.inverse), Factor(_sum(rests, [s for _, s in terms]))])
    divisors = [f for f in shared if f.inverse]
    if divisors:
        body = multiplied([Factor(body), *divisors])
    return Reduce(node.reducer, (body,), node.axes, node.where, node.position)


def without(factors: Sequence[Factor], shared: Sequence[Factor]) -> list[Factor]:
    """``factors`` without one of each of ``shared``."""
    left = Counter(shared)
    kept: list[Factor] = []
    for factor in factors:
        if left[factor]:
            left[factor] -= 1
        else:
            kept.append(factor)
    return kept


def _sum(terms: Sequence[Expr], signs: Sequence[int]) -> Expr:
    """The terms added up; equal ones as a multiple."""
    counts: dict[Expr, int] = {}
    for term, sign in zip(terms, signs, strict=True):
        counts[term] = counts.get(term, 0) + sign
    total: Expr | None = None
    for term, count in counts.items():
        own = term if count == 1 else term * count
        total = own if total is None else total + own
    assert total is not None
    return total

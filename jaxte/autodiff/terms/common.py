"""Terms that differ in factors which leave a sum are one term: the adjoint of what a definition reads twice in one product.

sum over d of H[b, d]*o[h, d]*s(a[b, h]) + H[b, d]*o[h, d]*a[b, h]*s'(a[b, h])
is (s(a[b, h]) + a[b, h]*s'(a[b, h])) * sum over d of H[b, d]*o[h, d],   a product of matrices
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import Axis, Call, Expr, call
from jaxte.lang.operators import MULTIPLY
from jaxte.lang.walk import depends_on
from jaxte.lower.match.product import Factor, multiplied, product_of
from jaxte.lower.match.sums import Signed, added, signed_terms

_MOST_TERMS = 16


def with_common_factor(value: Expr, axes: Sequence[Axis]) -> Expr:
    """``value``, a sum of products, as a product of the factors over ``axes`` and a sum of the others; as it is where these differ."""
    if not (isinstance(value, Call) and is_inexact(value.dtype)):
        return value
    terms = signed_terms(value, negated=True)
    if not 1 < len(terms) <= _MOST_TERMS:
        return value
    common: list[Factor] | None = None
    left: list[Signed] = []
    for term, sign in terms:
        factors = product_of(term, whole=True).factors
        own = [f for f in factors if depends_on(f.expr, axes)]
        rest = [f for f in factors if not depends_on(f.expr, axes)]
        common = own if common is None else common
        if not any(not f.inverse for f in own) or Counter(own) != Counter(common):
            return value
        left.append((multiplied(rest), sign))
    assert common is not None
    found = call(MULTIPLY, multiplied(common), added(left))
    return found if found.dtype == value.dtype and found.weak == value.weak else value

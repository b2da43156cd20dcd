"""Terms that differ in factors which leave a sum are one term: the adjoint of what a definition reads twice in one product.

sum over d of H[b, d]*o[h, d]*s(a[b, h]) + H[b, d]*o[h, d]*a[b, h]*s'(a[b, h])
is (s(a[b, h]) + a[b, h]*s'(a[b, h])) * sum over d of H[b, d]*o[h, d],   a product of matrices

and what all terms are multiplied by, under guards or not, multiplies their sum:

sum over j of select(hit[b, i, j], m[b, i]*k[j, d], 0) + e[b, i, j]*k[j, d]
is sum over j of (select(hit[b, i, j], m[b, i], 0) + e[b, i, j]) * k[j, d]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxte.algebra.product import Factor, is_zero, multiplied, product_of
from jaxte.algebra.sums import Signed, added, signed_terms
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.expr import Axis, Call, Expr, Read, call
from jaxte.lang.operators import MULTIPLY, SELECT
from jaxte.lang.walk import depends_on, free_axes

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


def with_shared_factor(value: Expr) -> Expr:
    """``value``, a sum of products of which some are guarded, as a product of their sum and what is a factor of all; as it is where nothing is.

    Only where the sum then lacks an axis, so that the whole is a product of matrices, and one of the terms has no guard: what that one is multiplied
    by may be infinite with or without the others.
    """
    if not (isinstance(value, Call) and is_inexact(value.dtype)):
        return value
    terms = signed_terms(value, negated=True)
    plain = [t for t, _ in terms if not _is_guarded(t)]
    if not 1 < len(terms) <= _MOST_TERMS or not plain or len(plain) == len(terms):
        return value
    for factor in product_of(plain[0], whole=True).factors:
        if factor.inverse or not isinstance(factor.expr, Read):
            continue
        rests = [_without(term, factor) for term, _ in terms]
        left = [r for r in rests if r is not None]
        if len(left) < len(terms) or set(free_axes(value)) == {a for r in left for a in free_axes(r)}:
            continue
        total = added([(rest, sign) for rest, (_, sign) in zip(left, terms, strict=True)])
        found = call(MULTIPLY, total, factor.expr)
        if found.dtype == value.dtype and found.weak == value.weak:
            return found
    return value


def _is_guarded(term: Expr) -> bool:
    """Whether ``term`` is a choice between something and zero."""
    return isinstance(term, Call) and term.op is SELECT and any(map(is_zero, term.args[1:]))


def _without(term: Expr, factor: Factor) -> Expr | None:
    """``term`` with ``factor`` left out; None where it has no such factor."""
    if isinstance(term, Call) and _is_guarded(term):
        test, *branches = term.args
        rests = [b if is_zero(b) else _without(b, factor) for b in branches]
        left = [r for r in rests if r is not None]
        return call(SELECT, test, *left) if len(left) == len(rests) else None
    factors = product_of(term, whole=True).factors
    at = next((n for n, f in enumerate(factors) if f.expr is factor.expr and not f.inverse), None)
    return None if at is None else multiplied([*factors[:at], *factors[at + 1 :]])

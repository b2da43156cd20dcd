"""What the terms of sums have in common: ``sum of (k * a + k * b)``, ``(sum of k * a) - (sum of k * b)``.

Sums over the same positions that share a factor like ``k = exp(...)`` become one sum of ``k`` times what is left of all terms. Adjoints
of ``sum of k(x[i + p]) * x[i + p]`` are of this kind: ``k`` is differentiated to itself. XLA evaluates a function again for each
loop that it stands in, and keeps what stands in one loop several times in memory.

Products of matrices that share one of them are one product, ``(A + B) @ x`` for ``A @ x + B @ x``, where there are many fewer elements to add
than products to make: the adjoint of ``x.T @ x`` is ``(H + H.T) @ x``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.algebra.product import Factor, Product, in_common, is_zero, multiplied, product_of, without
from jaxte.algebra.sums import Signed, added, signed_terms
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Call, Const, Expr, Reduce, call, conjuncts
from jaxte.lang.limits import FAR_FEWER, MOST_PARTS
from jaxte.lang.operators import MULTIPLY, NEGATIVE, SELECT
from jaxte.lang.walk import free_axes, substitute
from jaxte.lower.cost.work import expensive_calls, points


@dataclass(frozen=True, slots=True)
class SignedSum:
    """``sign`` times ``node`` where ``condition`` holds, zero elsewhere."""

    sign: int
    condition: Expr
    node: Reduce


def with_shared_calls(root: Expr) -> Expr:
    """``root``, a sum of sums, with those that share an expensive factor as one."""
    terms = signed_terms(root)
    if len(terms) > MOST_PARTS:
        return root
    found = [sum_in(term, sign) for term, sign in terms]
    if sum(len(signed_terms(own.node.exprs[0])) for own in found if own is not None) < 2:
        return root
    groups: dict[object, list[SignedSum]] = {}
    for own in found:
        if own is not None:
            groups.setdefault(domain(own), []).append(own)
    joined = {key: _joined(members) for key, members in groups.items()}
    if all(expr is None for expr in joined.values()):
        return root
    kept: list[tuple[Expr, int]] = []
    for (term, sign), own in zip(terms, found, strict=True):
        whole = None if own is None else joined[domain(own)]
        if own is None or whole is None:
            kept.append((term, sign))
        elif own is groups[domain(own)][0]:
            kept.append((whole, 1))
    return _positive_first(kept)


def sum_in(term: Expr, sign: int) -> SignedSum | None:
    """The sum that ``sign`` times ``term`` is, if it is one."""
    condition: Expr = TRUE
    while True:
        match term:
            case Call(op, (inner,)) if op is NEGATIVE:
                term, sign = inner, -sign
            case Call(op, (test, inner, other)) if op is SELECT and is_zero(other) and condition is TRUE:
                term, condition = inner, test
            case Reduce() if term.is_sum:
                return SignedSum(sign, condition, term)
            case _:
                return None


def domain(own: SignedSum) -> object:
    """What sums over the same positions have in common, whatever their axes are called."""
    node = own.node
    numbers = {axis: Const(n, "int32") for n, axis in enumerate(node.axes)}
    guards = frozenset(substitute(guard, numbers) for guard in conjuncts(node.where))
    return node.dtype, own.condition, tuple((a.lo, a.hi) for a in node.axes), guards


def _joined(members: Sequence[SignedSum]) -> Expr | None:
    """The sums as one, positive; None where no expensive function is in all of their terms."""
    first = members[0].node
    products: list[tuple[Product, int]] = []
    for own in members:
        body = substitute(own.node.exprs[0], dict(zip(own.node.axes, first.axes, strict=True)))
        products += [(product_of(term), own.sign * sign) for term, sign in signed_terms(body)]
    if not 1 < len(products) <= MOST_PARTS or any(p.is_conditional for p, _ in products):
        return None
    common = in_common([p.factors for p, _ in products])
    shared = [f for f in common if not f.inverse and not isinstance(f.expr, Const)]
    if not _is_matrix_product(shared, products, first):
        shared = [f for f in shared if expensive_calls([f.expr])]
    if not shared:
        return None
    rests = [_with_number(without(p.factors, shared), sign) for p, sign in products]
    axes = [frozenset(free_axes(rest)) for rest, _ in rests]
    if frozenset().union(*axes) not in axes:  # their sum would be larger than each of them
        return None
    body = multiplied([*shared, Factor(_positive_first(rests))])
    if body.dtype != first.exprs[0].dtype or body.weak:
        return None
    result: Expr = first.changed(exprs=(body,))
    if members[0].condition is not TRUE:
        result = call(SELECT, members[0].condition, result, Const(0.0))
    return result


def _is_matrix_product(
    shared: Sequence[Factor], products: Sequence[tuple[Product, int]], node: Reduce
) -> bool:
    """Whether what is left of each of ``products`` is an array, the same axes in all, that takes much less to add than to multiply."""
    if len(products) < 2 or not shared or not dtypes.is_inexact(node.dtype):
        return False
    over = {a for f in shared for a in free_axes(f.expr)}
    rests = [{a for f in without(p.factors, shared) for a in free_axes(f.expr)} for p, _ in products]
    summed = [a for a in node.axes if a in over and a in rests[0]]
    apart = points(over - rests[0]) >= FAR_FEWER and points(rests[0] - over) > 1
    return bool(summed) and apart and all(own == rests[0] for own in rests)


def _with_number(factors: Sequence[Factor], sign: int) -> tuple[Expr, int]:
    """A product with its whole numbers multiplied, and its sign."""
    number, others = sign, list[Factor]()
    for factor in factors:
        if isinstance(factor.expr, Const) and not factor.inverse and _is_whole(factor.expr):
            number *= int(factor.expr.value)  # type: ignore[arg-type]
        else:
            others.append(factor)
    if not others:
        return Const(abs(number)), 1 if number >= 0 else -1
    product = multiplied(others)
    scaled = product if abs(number) == 1 else call(MULTIPLY, Const(abs(number)), product)
    return scaled, 1 if number >= 0 else -1


def _is_whole(expr: Const) -> bool:
    value = expr.value
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)


def _positive_first(terms: Sequence[Signed]) -> Expr:
    return added(sorted(terms, key=lambda term: -term[1]))

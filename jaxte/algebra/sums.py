"""Sums as their terms, and terms as sums: the one way in which forms and rewrites take sums apart and put them together, and how much they compute.

Like terms, products of the same factors, whatever their order, grouping and numbers, are added up as one.
``H + -(H * 0.1) * 4`` is ``0.6 * H``, and ``H * (g * x) + H * x * g``, which a square leaves, is ``2 * (H * (g * x))``.

Terms that differ in factors which leave a sum are one term: the adjoint of what a definition reads twice in one product.

sum over d of H[b, d]*o[h, d]*s(a[b, h]) + H[b, d]*o[h, d]*a[b, h]*s'(a[b, h])
is (s(a[b, h]) + a[b, h]*s'(a[b, h])) * sum over d of H[b, d]*o[h, d],   a product of matrices

and what all terms are multiplied by, under guards or not, multiplies their sum:

sum over j of select(hit[b, i, j], m[b, i]*k[j, d], 0) + e[b, i, j]*k[j, d]
is sum over j of (select(hit[b, i, j], m[b, i], 0) + e[b, i, j]) * k[j, d]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from jaxte.algebra.product import Factor, is_zero, multiplied, product_of
from jaxte.lang import dtypes
from jaxte.lang.dtypes import LEAST, ROUNDED, is_inexact
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.graphs import ordered, reached
from jaxte.lang.limits import FUNCTION, LEVELS, MOST_PARTS, MOST_TERMS
from jaxte.lang.operators import ADD, DIVIDE, MULTIPLY, NEGATIVE, SELECT, SUBTRACT
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.scalars.times import times_of
from jaxte.lang.walk import depends_on, free_axes

Signed = tuple[Expr, int]  # a term with 1 where it is added, -1 where it is subtracted


def signed_terms(expr: Expr, mixed: bool = False, negated: bool = False) -> list[Signed]:
    """The summands of ``expr`` in order, with their signs.

    Those beyond ``MOST_PARTS`` stay together: shared subexpressions would make them exponentially many.

    Args:
        expr: a sum, or anything else as the only term.
        mixed: whether terms may have other dtypes than the sum.
        negated: whether the terms of a negated sum are taken too.
    """
    found: list[Signed] = []
    stack = [(expr, 1)]
    while stack:
        node, sign = stack.pop()
        match node:
            case _ if len(found) + len(stack) > MOST_PARTS:
                found.append((node, sign))
            case Call(op, (a, b)) if op in (ADD, SUBTRACT) and _is_of(expr.dtype, node, mixed):
                stack += [(b, sign if op is ADD else -sign), (a, sign)]
            case Call(op, (a,)) if negated and op is NEGATIVE:
                stack.append((a, -sign))
            case _:
                found.append((node, sign))
    return found


def addends(expr: Expr) -> list[Expr]:
    """The summands of ``expr`` in order, differences among them as they stand."""
    found: list[Expr] = []
    stack = [expr]
    while stack:
        match stack.pop():
            case Call(op, (a, b)) as node if (
                op is ADD and node.dtype == expr.dtype and len(found) + len(stack) <= MOST_PARTS
            ):
                stack += [b, a]
            case other:
                found.append(other)
    return found


def summed(terms: Iterable[Expr]) -> Expr:
    """The sum of ``terms``, of which there is one at least."""
    return reduce(lambda a, b: call(ADD, a, b), terms)


def added(terms: Sequence[Signed]) -> Expr:
    """The sum of ``terms`` from the first to the last."""
    (total, sign), *others = terms
    if sign < 0:
        total = call(NEGATIVE, total)
    for term, own in others:
        total = call(ADD if own > 0 else SUBTRACT, total, term)
    return total


def _is_of(dtype: str, node: Call, mixed: bool) -> bool:
    return node.dtype == dtype and (mixed or all(part.dtype == dtype for part in node.args))


_QUOTIENT = 3  # what a quotient takes in multiplications


def operands(node: Expr) -> Sequence[Expr]:
    """What ``node`` is computed of; not the indices of a read."""
    return () if isinstance(node, Read) else node.children


def value_nodes(*roots: Expr) -> list[Expr]:
    """The nodes below ``roots`` that are not part of an index, operands before what they are operands of."""
    return ordered(roots, operands)


def operations(root: Expr, known: Collection[Expr] = ()) -> int:
    """Operations below ``root``, less those of ``known`` nodes; functions count as several."""
    nodes = reached([root], lambda node: [child for child in operands(node) if child not in known])
    return sum(weight(node) for node in nodes if isinstance(node, Call) and not node.weak)


def weight(node: Call) -> int:
    """What ``node`` alone counts for."""
    if node.op is DIVIDE:
        return _QUOTIENT
    if node.op.name == "power" and isinstance(exponent := node.args[1], Const):
        return 1 if exponent.value == 2 else FUNCTION * function_times(node)
    return 1 if node.op.name not in TABLE or TABLE[node.op.name].cheap else FUNCTION * function_times(node)


def function_times(node: Call) -> int:
    """How many times as long as ``exp`` a function takes: powers in quarters are products of roots."""
    if node.op.name == "power" and isinstance(exponent := node.args[1], Const):
        value = exponent.value
        in_roots = isinstance(value, (int, float)) and float(4 * value).is_integer()
        return 1 if in_roots else times_of("power")
    return times_of(node.op.name)


@dataclass(frozen=True, slots=True)
class Term:
    """``coefficient * product``.

    Attributes:
        product: without numbers among its factors; None where there is nothing else.
        factors: each with how often it stands above less how often it stands below.
    """

    coefficient: float
    product: Expr | None
    factors: frozenset[tuple[Expr, int]]


@lru_cache(maxsize=4096)
def term_of(expr: Expr) -> Term:
    """``expr`` as a number times a product."""
    coefficient, product = _stripped(expr, 0)
    powers: Counter[Expr] = Counter()
    if product is not None:
        for factor in product_of(product, whole=True).factors:
            powers[factor.expr] += -1 if factor.inverse else 1
    return Term(coefficient, product, frozenset((f, n) for f, n in powers.items() if n))


def _stripped(node: Expr, depth: int) -> tuple[float, Expr | None]:
    """The product of the numbers in a product, and the product without them."""
    if isinstance(node, Const) and _is_number(node):
        return float(node.value.real), None
    if depth < LEVELS and isinstance(node, Call) and dtypes.is_inexact(node.dtype):
        match node.op, node.args:
            case op, (a,) if op is NEGATIVE:
                number, rest = _stripped(a, depth + 1)
                return -number, rest
            case op, (a, b) if op is MULTIPLY:
                (m, x), (n, y) = _stripped(a, depth + 1), _stripped(b, depth + 1)
                return m * n, y if x is None else x if y is None else call(MULTIPLY, x, y)
            case op, (a, b) if op is DIVIDE and not isinstance(a, Const):
                (m, x), (n, y) = _stripped(a, depth + 1), _stripped(b, depth + 1)
                if x is not None and n != 0:
                    return m / n, x if y is None else call(DIVIDE, x, y)
    return 1.0, node


def _is_number(node: Const) -> bool:
    """Whether a constant is a finite real number that takes the type of what it meets."""
    return node.weak and isinstance(node.value, (int, float)) and abs(node.value) < 1e300


def with_one_number(expr: Expr) -> Expr:
    """A product, or what a sum adds up, with one number in front where it has several: ``-(H * 0.75) * y * 0.01`` as ``-(0.0075 * (H * y))``."""
    if isinstance(expr, Reduce) and expr.is_sum:
        own, where = expr.children
        plain = with_one_number(own)
        return expr if plain is own else expr.rebuild([plain, where])
    if _numbers(expr) < 2:
        return expr
    term = term_of(expr)
    if (
        term.product is None
        or term.product.dtype != expr.dtype
        or not LEAST < abs(term.coefficient) < 1 / LEAST
    ):
        return expr
    return scaled(term, term.coefficient)


def _numbers(expr: Expr) -> int:
    """How many numbers a product has."""
    _, factors = product_of(expr, whole=True).signed()
    return sum(isinstance(f.expr, Const) and _is_number(f.expr) for f in factors)


def alike(a: Expr, b: Expr, sign: float = 1.0) -> Expr | None:
    """``a + sign * b`` as one product; None where they are no multiples of each other."""
    if a.dtype != b.dtype or a.weak != b.weak or not dtypes.is_inexact(a.dtype):
        return None
    first, second = term_of(a), term_of(b)
    if first.product is None or first.product.dtype != a.dtype or first.factors != second.factors:
        return None
    return scaled(first, first.coefficient + sign * second.coefficient)


def scaled(term: Term, coefficient: float) -> Expr:
    """``coefficient`` times the product of ``term``; 0 where that is rounding alone."""
    assert term.product is not None
    if abs(coefficient) <= ROUNDED * abs(term.coefficient):
        return Const(0.0)
    size = term.product if abs(coefficient) == 1 else call(MULTIPLY, Const(abs(coefficient)), term.product)
    return size if coefficient > 0 else call(NEGATIVE, size)


def with_common_factor(value: Expr, axes: Sequence[Axis]) -> Expr:
    """``value``, a sum of products, as a product of the factors over ``axes`` and a sum of the others; as it is where these differ."""
    if not (isinstance(value, Call) and is_inexact(value.dtype)):
        return value
    terms = signed_terms(value, negated=True)
    if not 1 < len(terms) <= MOST_TERMS:
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
    if not 1 < len(terms) <= MOST_TERMS or not plain or len(plain) == len(terms):
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

"""Like terms: products of the same factors, whatever their order, grouping and numbers, added up as one.

``H + -(H * 0.1) * 4`` is ``0.6 * H``, and ``H * (g * x) + H * x * g``, which a square leaves, is ``2 * (H * (g * x))``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from jaxte.lang import dtypes
from jaxte.lang.expr import Call, Const, Expr, call
from jaxte.lang.operators import DIVIDE, MULTIPLY, NEGATIVE

_DEEPEST = 24  # products nested deeper than this are one factor, to keep the work linear
_ROUNDING = 1e-14
_SMALL = 1e-4  # numbers from here to its inverse are within the range of every dtype


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
        _count(product, 1, powers, 0)
    return Term(coefficient, product, frozenset((f, n) for f, n in powers.items() if n))


def _stripped(node: Expr, depth: int) -> tuple[float, Expr | None]:
    """The product of the numbers in a product, and the product without them."""
    if isinstance(node, Const) and _is_number(node):
        return float(node.value.real), None
    if depth < _DEEPEST and isinstance(node, Call) and dtypes.is_inexact(node.dtype):
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


def _count(node: Expr, power: int, powers: Counter[Expr], depth: int) -> None:
    if depth < _DEEPEST and isinstance(node, Call):
        match node.op, node.args:
            case op, (a, b) if op is MULTIPLY:
                _count(a, power, powers, depth + 1)
                _count(b, power, powers, depth + 1)
                return
            case op, (a, b) if op is DIVIDE:
                _count(a, power, powers, depth + 1)
                _count(b, -power, powers, depth + 1)
                return
    powers[node] += power


def with_one_number(expr: Expr) -> Expr:
    """A product with one number in front, where it has several: ``-(H * 0.75) * y * 0.01`` as ``-(0.0075 * (H * y))``."""
    if _numbers(expr) < 2:
        return expr
    term = term_of(expr)
    if (
        term.product is None
        or term.product.dtype != expr.dtype
        or not _SMALL < abs(term.coefficient) < 1 / _SMALL
    ):
        return expr
    return scaled(term, term.coefficient)


def _numbers(expr: Expr) -> int:
    """How many numbers a product has."""
    found, stack = 0, [expr]
    for _ in range(_DEEPEST):
        if not stack:
            break
        match stack.pop():
            case Call(op, args) if op in (MULTIPLY, DIVIDE, NEGATIVE):
                stack += args
            case Const() as node:
                found += _is_number(node)
    return found


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
    if abs(coefficient) <= _ROUNDING * abs(term.coefficient):
        return Const(0.0)
    size = term.product if abs(coefficient) == 1 else call(MULTIPLY, Const(abs(coefficient)), term.product)
    return size if coefficient > 0 else call(NEGATIVE, size)

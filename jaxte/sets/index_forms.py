"""What is asked of expressions that may be indices: whether they have linear forms, and of which terms they are multiples.

Sizes in the one form in which emitted code has them, and in which they are compared.

``jax.export`` compares symbolic sizes as it computed them: ``n // 2`` and ``(n - n % 2) // 2`` are two sizes to it, ``(n + 1) // 2 - 1`` and
``(n - 1) // 2`` too. So each size is written as a sum of sizes and of their quotients, no remainders, and in a quotient by ``c`` with a
number from 0 to ``c - 1``. Of two halves only one is a quotient, ``(n + 1) // 2`` is ``n - n // 2``, so that the extents of even and odd
elements add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd

from jaxte.lang.divisions import Quotient, Remainder, division
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Var, as_expr, call
from jaxte.lang.operators import FLOOR_DIVIDE
from jaxte.lang.text import text
from jaxte.lang.walk import free_axes
from jaxte.sets.affine import linear
from jaxte.sets.linear import Linear

_STRICT = {"less": -1, "less_equal": 0, "greater": -1, "greater_equal": 0}
AFFINE_COMPARISONS = (*_STRICT, "equal")


@lru_cache(maxsize=4096)
def is_index(expr: Expr) -> bool:
    """Whether ``expr`` is (quasi-)affine in axes and sizes, with no data in it."""
    return not _holds_data(expr) and linear_or_none(expr) is not None


def _holds_data(expr: Expr) -> bool:
    """Whether there is more than arithmetic on axes and sizes in ``expr``; the first of it that is met says so."""
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if node not in seen:
            if not isinstance(node, (Call, Axis, Const, Var)):
                return True
            seen.add(node)
            stack.extend(node.children)
    return False


def linear_or_none(expr: Expr) -> Linear | None:
    """The linear form of ``expr``; None where it has none."""
    try:
        return linear(expr)
    except IndexExpressionError:
        return None


def difference(comparison: Call) -> Linear | None:
    """What is on the left of a comparison less what is on the right; None where one of them is no integer arithmetic."""
    left, right = map(linear_or_none, comparison.args)
    return None if left is None or right is None else left - right


@lru_cache(maxsize=4096)
def nonnegative_forms(condition: Expr) -> tuple[Linear, ...]:
    """Forms that are at least 0 exactly where an affine comparison holds; none if it is something else."""
    if not isinstance(condition, Call) or condition.op.name not in AFFINE_COMPARISONS:
        return ()
    form = difference(condition)
    if form is None:
        return ()
    name = condition.op.name
    if name == "equal":
        return form, form * -1
    return (Linear({}).plus(form, 1 if name.startswith("greater") else -1, _STRICT[name]),)


class Term(frozenset[tuple[Expr, int]]):
    """``sum of coefficient * atom``, the coefficients without a common divisor: equal where these are, in whatever order.

    Attributes:
        form: the sum, in the order in which it was written.
        axes: what it depends on, in order of appearance.
    """

    __slots__ = ("axes", "form")
    form: Linear
    axes: Mapping[Axis, None]

    def __init__(self, parts: Sequence[tuple[Expr, int]]) -> None:
        self.form = Linear(dict(parts))
        self.axes = {axis: None for atom in self.form.terms for axis in free_axes(atom)}


def term_of(form: Linear, known: Iterable[Term] = ()) -> tuple[Term, int]:
    """The term that ``form`` is a multiple of (its constant aside), one of ``known`` if it or its negative is, and the factor."""
    factor, term, negative = _terms_of(tuple(form.terms.items()))
    return (negative, -factor) if negative in known else (term, factor)


@lru_cache(maxsize=4096)  # each order of summation asks for the same terms
def _terms_of(parts: tuple[tuple[Expr, int], ...]) -> tuple[int, Term, Term]:
    """The greatest common divisor of coefficients, the term of which they are that many times, and its negative."""
    factor = gcd(*[c for _, c in parts])
    return factor, Term([(a, c // factor) for a, c in parts]), Term([(a, c // -factor) for a, c in parts])


@lru_cache(maxsize=4096)
def written_size(size: Expr) -> Expr:
    """``size`` as it is written."""
    return size if not size.children else _sum(_form(linear(size)))


def is_multiple(size: Expr, divisor: int) -> bool:
    """Whether every size in ``size`` stands there ``divisor`` times, or some multiple of it.

    JAX may know such a size by another name: ``2 * n`` where it is told that it is even. Then it does not know that its half is ``n``, but for
    what is written as ``n``.
    """
    terms = linear(size).terms
    return any(isinstance(a, Var) for a in terms) and all(c % divisor == 0 for c in terms.values())


def _form(form: Linear) -> Linear:
    """``form`` over sizes and quotients that are written."""
    result = Linear({}, form.constant)
    for atom, coefficient in form.terms.items():
        result = result + _atom(atom) * coefficient
    return result


def _atom(atom: Expr) -> Linear:
    match division(atom):
        case Quotient(numerator, int() as divisor):
            return _quotient(_form(linear(numerator)), divisor)
        case Remainder(numerator, int() as divisor):
            inner = _form(linear(numerator))
            return inner - _quotient(inner, divisor) * divisor
    return Linear({atom: 1})


def _quotient(form: Linear, divisor: int) -> Linear:
    whole = Linear({a: c // divisor for a, c in form.terms.items() if c // divisor}, form.constant // divisor)
    rest = form - whole * divisor
    if not rest.terms:
        return whole
    common = gcd(divisor, *rest.terms.values())
    if common > 1:  # (2 * e + r) // (2 * c) == (e + r // 2) // c
        return whole + _quotient(rest // common, divisor // common)
    if divisor == 2 and rest.constant:
        lower = rest - Linear({}, 1)
        return whole + lower - _quotient(lower, 2)
    match [q for a, c in rest.terms.items() if c == 1 and isinstance(q := division(a), Quotient)]:
        case [Quotient(numerator, int() as inner) as only]:  # (x // b + e) // c == (x + b * e) // (b * c)
            outer = rest.without(only.node) * inner + _form(linear(numerator))
            return whole + _quotient(outer, divisor * inner)
    named = Linear(dict(sorted(rest.terms.items(), key=lambda term: text(term[0]))), rest.constant)
    return whole + Linear({call(FLOOR_DIVIDE, _sum(named), as_expr(divisor)): 1})


def _sum(form: Linear) -> Expr:
    """A sum with what is subtracted last."""
    ordered = sorted(form.terms.items(), key=lambda term: -abs(term[1]))
    positive = [(a, c) for a, c in ordered if c > 0]
    negative = [(a, -c) for a, c in ordered if c < 0]
    result: Expr | None = None if positive or not form.constant else as_expr(form.constant)
    left = form.constant if positive or result is None else 0
    for atom, coefficient in positive:
        term = atom if coefficient == 1 else coefficient * atom
        result = term if result is None else result + term
    for atom, coefficient in negative:
        term = atom if coefficient == 1 else coefficient * atom
        result = -term if result is None else result - term
    if result is None:
        return as_expr(left)
    return result + left if left > 0 else result - -left if left else result

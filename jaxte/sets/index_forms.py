"""What is asked of expressions that may be indices: whether they have linear forms, and of which terms they are multiples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd

from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import Axis, Call, Const, Expr, Var
from jaxte.lang.walk import free_axes
from jaxte.sets.affine import Linear, linear


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

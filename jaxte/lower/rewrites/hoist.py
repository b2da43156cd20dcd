"""What a sum does not depend on leaves it: weights of its terms, and choices.

    sum over c of (a[i]*G[i, c]*X[I[i], c] + b[i]*...)         a[i] * (sum over c of G[i, c]*X[I[i], c]) + b[i] * ...
    sum over k of select(n[i] > 1, x[i, k]/n[i], x[i, k])      select(n[i] > 1, S[i]/n[i], S[i]) with S[i] = sum over k of x[i, k]

What is left may then be the same sum for several weights, as in adjoints of positions between elements (bilinear reads), or what is multiplied,
without a choice for each element, as in the adjoint of a norm that is bounded below. A branch that is not taken still contributes nothing,
whatever its sum and its factors are.

Factors over fewer axes are multiplied with each other first, and what is as large as the result once with all of them.

    h[b, i - 1, j] * 0.1 / (2 * c[i - 1]) * (c[i] + c[i - 1])    is    h[b, i - 1, j] * (0.1 / (2 * c[i - 1]) * (c[i] + c[i - 1]))

with one product for each element in place of two and a division. Adjoints of stencils with coefficients have such a term for each neighbour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import is_
from typing import Any

from jaxte.algebra.product import (
    Factor,
    in_common,
    is_zero,
    may_be_infinite,
    multiplied,
    product_of,
    split_outer,
    times_sum,
    without,
)
from jaxte.algebra.sums import Signed, added, signed_terms, weight
from jaxte.lang import dtypes
from jaxte.lang.expr import TRUE, Axis, Call, Const, Expr, Read, Reduce, call
from jaxte.lang.limits import CASES, FUNCTION, LARGE_ROWS, MOST_TERMS
from jaxte.lang.operators import DIVIDE, MULTIPLY, NEGATIVE, SELECT
from jaxte.lang.walk import depends_on, free_axes, nodes_outside, reads_data, rewrite, substitute
from jaxte.lower.cost.work import points

_NARROW = ("float16", "bfloat16")  # parts of a sum would be rounded one by one


def with_factors_outside(root: Expr) -> Expr:
    """``root`` with what its sums do not depend on outside of them."""
    return rewrite(root, _outside) if root.reduces else root


def _outside(node: Expr) -> Expr:
    if not isinstance(node, Reduce) or not node.is_sum:
        return node
    for outside in (_choice_outside, _weights_outside):
        found = outside(node)
        if found is not None and found.dtype == node.dtype and not found.weak:
            return found
    return node


# --- weights of each term


def _weights_outside(node: Reduce) -> Expr | None:
    """``node`` as a sum of weighted sums over gathered rows; None where it is none, or these are few."""
    if node.where is not TRUE or node.dtype in _NARROW:
        return None
    terms = signed_terms(node.exprs[0], negated=True)
    if not 1 < len(terms) <= MOST_TERMS:
        return None
    if len(terms) * dtypes.width(node.dtype) * points({*free_axes(node), *node.axes}) < LARGE_ROWS:
        return None  # in one loop what the caches hold is read faster
    parts: list[Signed] = []
    for term, sign in terms:
        own = _weighted(term, node)
        if own is None:
            return None
        parts.append((own, sign))
    return added(parts)


def _weighted(term: Expr, node: Reduce) -> Expr | None:
    """The sum of ``term`` with its weight outside; None where it has none, or nothing gathered."""
    product = product_of(term)
    outer, inner = split_outer(product.factors, node.axes)
    guards = [f for f in product.factors if f.guard]
    if product.guards or any(depends_on(f.expr, node.axes) for f in guards):
        return None
    outer, inner = [f for f in outer if not f.guard], [f for f in inner if not f.guard]
    above = [f for f in inner if not f.inverse]
    if not outer or len(above) < 2 or not any(reads_data(f.expr) for f in above):
        return None
    return times_sum(outer, inner, node, [f.expr for f in guards])


# --- choices


def _choice_outside(node: Reduce) -> Expr | None:
    """``node`` as a choice among multiples of one sum; None where it is none."""
    product = product_of(node.exprs[0])
    choice = next((f for f in product.factors if _is_choice(f, node)), None)
    if choice is None or product.is_conditional:
        return None
    others = [f for f in product.factors if f is not choice]
    factors = {b: _factors(others, b) for b in _branches(choice.expr, node) if not is_zero(b)}
    multiples = _multiples(factors, node)
    return None if multiples is None else _chosen(choice.expr, multiples, node)


def _is_choice(factor: Factor, node: Reduce) -> bool:
    """Whether a factor is chosen by a condition without reduced axes, among values with them."""
    expr = factor.expr
    return (
        isinstance(expr, Call)
        and expr.op is SELECT
        and not factor.inverse
        and not factor.guard
        and depends_on(expr, node.axes)
        and not depends_on(expr.args[0], node.axes)
    )


def _branches(expr: Expr, node: Reduce) -> list[Expr]:
    """What is chosen among, once the choices that have no reduced axes in their conditions are made."""
    found: list[Expr] = []
    stack = [expr]
    while stack:
        branch = stack.pop()
        if isinstance(branch, Call) and _is_choice(Factor(branch), node) and len(found) < CASES:
            stack += [branch.args[2], branch.args[1]]
        else:
            found.append(branch)
    return found


def _factors(others: Sequence[Factor], branch: Expr) -> tuple[Factor, ...] | None:
    """The factors of a branch, with those beside the choice; None where some of them are conditions."""
    product = product_of(multiplied([*others, Factor(branch)]))
    return None if product.is_conditional else product.factors


def _multiples(branches: Mapping[Expr, tuple[Factor, ...] | None], node: Reduce) -> dict[Expr, Expr] | None:
    """Each branch as a multiple of one sum, of the factors with reduced axes, if these are the same in all of them."""
    outer: dict[Expr, list[Factor]] = {}
    inner: list[Factor] | None = None
    for branch, factors in branches.items():
        if factors is None:
            return None
        outer[branch], own = split_outer(factors, node.axes)
        inner = own if inner is None else inner
        if Counter(own) != Counter(inner):
            return None
    if inner is None or (node.where is not TRUE and any(map(may_be_infinite, chain(*outer.values())))):
        return None  # a sum without points is zero, whatever it is multiplied by
    total = node.changed(exprs=(multiplied(inner),))
    common = in_common(list(outer.values()))
    shared = Factor(multiplied([Factor(total), *common]))
    return {branch: multiplied([*without(own, common), shared]) for branch, own in outer.items()}


def _chosen(expr: Expr, multiples: Mapping[Expr, Expr], node: Reduce) -> Expr:
    """The choice ``expr`` with the sums of its branches in their place."""
    if expr in multiples:
        return multiples[expr]
    if is_zero(expr):
        return node.reducer.identity[node.position]
    assert isinstance(expr, Call)
    test, first, second = expr.args
    return call(SELECT, test, _chosen(first, multiples, node), _chosen(second, multiples, node))


_EXACT = ("float32", "float64", "complex64", "complex128")  # others would be rounded elsewhere
_PRODUCTS = (MULTIPLY, DIVIDE, NEGATIVE)
_LEAST_NUMBER = 1e-30  # of numbers that are multiplied beforehand: smaller ones, and the inverse of these, are rounded in float32


def with_narrow_factors_first(body: Expr, axes: Sequence[Axis]) -> Expr:
    """``body``, that of a tensor over ``axes``, with its products of factors over all and over fewer of them in that order."""
    if body.reduces:
        return body
    nodes = nodes_outside(body, (Read, Reduce))
    products = [n for n in nodes if isinstance(n, Call) and n.op in _PRODUCTS]
    if sum(map(weight, products)) < FUNCTION:
        return body
    within = {c for n in products for c in n.args}
    table: dict[Expr, Expr] = {}
    for node in products:
        if node not in within and node.dtype in _EXACT and not node.weak:
            found = _narrow_first(node, axes)
            if found.dtype == node.dtype and not found.weak:
                table[node] = found
    if all(map(is_, table, table.values())):
        return body
    new = substitute(body, table)
    return new if _work(new, axes) + FUNCTION <= _work(body, axes) else body


def _narrow_first(node: Expr, axes: Sequence[Axis]) -> Expr:
    product = product_of(node, whole=True)
    wide = [f for f in product.factors if _is_wide(f.expr, axes)]
    narrow = [f for f in product.factors if not _is_wide(f.expr, axes)]
    if product.is_conditional or not any(not f.inverse for f in wide) or len(narrow) < 2:
        return node
    numbers = [f for f in narrow if isinstance(f.expr, Const)]
    others = [f for f in narrow if not isinstance(f.expr, Const)]
    return multiplied([*wide, Factor(multiplied([*others, *_as_one(numbers)]))])


def _as_one(numbers: Sequence[Factor]) -> Sequence[Factor]:
    """Their product as one number, of the dtype that they have; as they are where it overflows, or where one of them is zero."""
    value: Any = 1
    for factor in numbers:
        assert isinstance(factor.expr, Const)
        own = factor.expr.value
        # whole numbers are divided in the dtype of the others
        if not own or (factor.inverse and isinstance(own, int)):
            return numbers
        value = value / own if factor.inverse else value * own
    if not numbers or not _LEAST_NUMBER < abs(value) < 1 / _LEAST_NUMBER:
        return numbers
    kinds = {f.expr.dtype for f in numbers if not f.expr.weak}
    fits = dtypes.is_complex if isinstance(value, complex) else dtypes.is_inexact
    if len(kinds) > 1 or not all(map(fits, kinds)):
        return numbers  # of several dtypes, the product has another one
    return [Factor(Const(value, next(iter(kinds), None)))]


def _is_wide(expr: Expr, axes: Sequence[Axis]) -> bool:
    return len(free_axes(expr).keys() & set(axes)) == len(axes)


def _work(body: Expr, axes: Sequence[Axis]) -> int:
    """Operations for each element."""
    nodes = nodes_outside(body, (Read, Reduce))
    return sum([weight(n) for n in nodes if isinstance(n, Call) and _is_wide(n, axes)])

"""Choices that a summation does not touch: ``sum over k of select(n[i] > 1, x[i, k] / n[i], select(n[i] == 1, x[i, k] / 2, 0))``.

Where the branches are one sum times factors of their own, or zero, the choice leaves it: ``S[i] = sum over k of x[i, k]``, and
``select(n[i] > 1, S[i] / n[i], select(n[i] == 1, S[i] / 2, 0))``. The adjoint of a norm that is bounded below, ``maximum(n[i], eps)``, is of
this kind. What is summed is then what was multiplied, without a choice for each element. A branch that is not taken still contributes
nothing, whatever its sum and its factors are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import and_

from jaxte.lang.expr import TRUE, Call, Expr, Reduce, call
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import depends_on
from jaxte.lower.match.product import Factor, is_zero, may_be_infinite, multiplied, product_of, split_outer
from jaxte.lower.rewrites.hoist_common_factors import without

_MOST_BRANCHES = 8


def with_choice_outside(node: Reduce) -> Expr | None:
    """``node`` as a choice among multiples of one sum; None where it is none."""
    if node.reducer.name != "sum":
        return None
    product = product_of(node.exprs[0])
    choice = next((f for f in product.factors if _is_choice(f, node)), None)
    if choice is None or product.guards or any(f.guard for f in product.factors):
        return None
    others = [f for f in product.factors if f is not choice]
    factors = {b: _factors(others, b) for b in _branches(choice.expr, node) if not is_zero(b)}
    multiples = _multiples(factors, node)
    if multiples is None:
        return None
    result = _chosen(choice.expr, multiples, node)
    return result if result.dtype == node.dtype and not result.weak else None


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
        if isinstance(branch, Call) and _is_choice(Factor(branch), node) and len(found) < _MOST_BRANCHES:
            stack += [branch.args[2], branch.args[1]]
        else:
            found.append(branch)
    return found


def _factors(others: Sequence[Factor], branch: Expr) -> tuple[Factor, ...] | None:
    """The factors of a branch, with those beside the choice; None where some of them are conditions."""
    product = product_of(multiplied([*others, Factor(branch)]))
    conditional = product.guards or any(f.guard for f in product.factors)
    return None if conditional else product.factors


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
    total = Reduce(node.reducer, (multiplied(inner),), node.axes, node.where, node.position)
    common = list(reduce(and_, map(Counter, outer.values())).elements())
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

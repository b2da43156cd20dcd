"""Which points of a sum conditions on data leave out, if something in it depends on a part of the axes and may be infinite: it counts where a point is left."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.product import may_spoil, product_of
from jaxte.algebra.sums import signed_terms
from jaxte.lang.expr import Axis, Expr, Reduce, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, reads_of


def asked_together(
    guards: Sequence[tuple[Expr, set[Axis]]], wanted: Sequence[Expr]
) -> list[tuple[list[Expr], set[Axis]]]:
    """The ``wanted`` ones of ``guards``, in groups that have no dimension in common, each with all that have one in common with it, and their dimensions.

    That ``A[i, k]`` holds for some ``k`` and ``B[j, k]`` for another one leaves no point at ``i`` and ``j``.
    """
    left, found = [(guard, dims) for guard, dims in guards if dims], []
    while left:
        first, dims = left.pop(0)
        together, rest = [first], set(dims)
        while near := [(g, own) for g, own in left if own & rest]:
            together += [g for g, _ in near]
            rest = rest.union(*(own for _, own in near))
            left = [(g, own) for g, own in left if not among(g, together)]
        if any(among(g, wanted) for g in together):
            found.append((together, rest))
    return found


def with_conditions_around(node: Reduce, conditions: Sequence[Expr]) -> Reduce:
    """``node``, which counts where ``conditions`` hold, under those of them too that leave out what its own do not.

    ``select(A[k], sum over i of B[i, k] * sqrt(X[i]) where M[i, k], 0)`` reads the elements ``X[i]`` for which some ``k`` fulfils both.
    """
    if node.reducer.name != "sum":
        return node
    more = [c for c in conditions if reads_of(c) and _leaves_out(node, c)]
    if not more:
        return node
    where = conjunction([*conjuncts(node.where), *more])
    return Reduce(node.reducer, node.exprs, node.axes, where, node.position)


def _leaves_out(node: Reduce, condition: Expr) -> bool:
    """Whether ``condition`` and others of the sum have axes in common that something which may be infinite has not."""
    for term, _ in signed_terms(node.exprs[0], mixed=True, negated=True):
        product = product_of(term, conjuncts(node.where))
        tests = [*product.guards, *(f.expr for f in product.factors if f.guard)]
        for factor in product.factors:
            own = set(free_axes(factor.expr))
            touched = [t for t in tests if reads_of(t) and not own.isdisjoint(free_axes(t))]
            if not touched or not may_spoil(factor):
                continue
            every = [(t, set(free_axes(t)) - own) for t in (*tests, condition)]
            if any(among(condition, together) for together, _ in asked_together(every, touched)):
                return True
    return False

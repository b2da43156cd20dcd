"""Conditions on data: those that keep positions in range or that facts and equations imply, and the points of a sum that they leave out.

A sum in which something depends on a part of the axes and may be infinite has to leave out what its conditions do: it counts where a point is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.algebra.data import Points, data_readings
from jaxte.algebra.product import may_spoil, product_of
from jaxte.algebra.sums import signed_terms
from jaxte.algebra.value_ranges import is_kept_within
from jaxte.lang.expr import Axis, Call, Expr, Read, Reduce, as_expr, call, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import free_axes, reads_of, rewrite, substitute
from jaxte.sets.conditions import prune
from jaxte.sets.index_forms import linear_or_none, nonnegative_forms
from jaxte.sets.intervals import at_most, known, stays_in
from jaxte.tensors.facts import values_in


def data_limits(read: Read) -> list[Expr]:
    """The conditions that keep the positions of ``read`` which are data in range, as far as nothing else does.

    The adjoint drops what is read out of range, and so a tangent has nothing there: the element that is read is NaN.
    """
    found: list[Expr] = []
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        if reads_of(index) and not _is_inside(index, as_expr(extent)):
            found += [index >= 0, index < as_expr(extent)]
    return found


def _is_inside(index: Expr, extent: Expr) -> bool:
    """Whether facts, or bounds that are written into it, keep a position that is data in ``[0, extent)``."""
    stop = values_in(index.tensor) if isinstance(index, Read) else None
    if stop is not None:
        return at_most(as_expr(stop), extent)
    form = linear_or_none(index)
    return (form is not None and stays_in(form, extent)) or is_kept_within(index, known(extent))


def without_implied(points: Points) -> Points:
    """The points without the conditions, also of choices in the value, that equations ``I[...] == value`` imply.

    Where ``I[e] == i`` holds for an ``i`` in ``[0, n)``, so does ``0 <= I[e] < n``.
    """
    known = {
        read: value
        for condition in points.conditions
        for read, value in data_readings(condition)
        if not reads_of(value)
    }
    if not known:
        return points

    def holds(condition: Expr) -> bool:
        if not any(read in known for read in reads_of(condition)):
            return False
        replaced = substitute(condition, known)
        return bool(nonnegative_forms(replaced)) and not prune([replaced], tuple(free_axes(replaced)))

    equations = [c for c in points.conditions if any(True for _ in data_readings(c))]
    left = [c for c in points.conditions if among(c, equations) or not holds(c)]

    def rule(node: Expr) -> Expr:
        if not (isinstance(node, Call) and node.op is SELECT):
            return node
        tests = conjuncts(node.args[0])
        rest = [test for test in tests if not holds(test)]
        if len(rest) == len(tests):
            return node
        return call(SELECT, conjunction(rest), *node.args[1:]) if rest else node.args[1]

    return Points(points.axes, tuple(left), rewrite(points.value, rule))


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
    if not node.is_sum:
        return node
    more = [c for c in conditions if reads_of(c) and _leaves_out(node, c)]
    if not more:
        return node
    where = conjunction([*conjuncts(node.where), *more])
    return node.changed(where=where)


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

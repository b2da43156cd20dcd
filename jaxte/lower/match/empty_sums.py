"""Sums without points: zero, also where a factor that has left the sum is infinite or NaN there.

``sum of x[k] / y[i] over k where m[k, i]`` is computed as ``(sum of x[k] where m[k, i]) / y[i]``. At an ``i`` at which
no ``k`` counts that is ``0 / y[i]``, which is NaN for ``y[i] == 0``. The adjoint of a maximum over no element
divides by its zero ties in this way, and ``y[j[i]]`` is NaN where ``j[i]`` is out of range. So sums like these stand behind the
condition that there is a point.

Reads at positions that are data, behind guards that keep the positions in range.

``select(0 <= I[i] and I[i] < n, X[I[i]], 0)`` never shows what X[I[i]] is out of range: any element will do there, and a
gather that takes the nearest one is several times faster than one that fills in NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxte.algebra.product import Factor, Product, may_spoil, product_of, split_outer
from jaxte.algebra.sums import signed_terms
from jaxte.lang import dtypes
from jaxte.lang.expr import (
    ONE,
    TRUE,
    Axis,
    Call,
    Const,
    Expr,
    Read,
    Reduce,
    as_expr,
    call,
    conjunction,
    conjuncts,
)
from jaxte.lang.graphs import among
from jaxte.lang.operators import GREATER, SELECT
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.lower.views.scope import Scope
from jaxte.planning.indices.fewer_axes import FewerAxes
from jaxte.planning.indices.shared_elements import Shared
from jaxte.sets.affine import linear
from jaxte.sets.domain import IntegerSet
from jaxte.sets.index_forms import linear_or_none, nonnegative_forms
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.linear import Linear
from jaxte.tensors.reducers import builtin_reducer


def point_condition(node: Reduce, scope: Scope) -> Expr | None:
    """Whether ``node`` has a point, as an expression; None where that does not matter or is known.

    It matters for factors that do not depend on what a condition depends on. The points are counted, since whatever
    form the sum has, the count of its points has too.
    """
    if not node.is_sum or not dtypes.is_inexact(node.dtype):
        return None
    terms = [term for term, _ in signed_terms(node.exprs[0], mixed=True, negated=True)]
    under = conjuncts(node.where)
    for term in terms:
        product = product_of(term, under)
        # The choices in one of several terms leave the points of the other terms, and stay choices.
        common = product_of(ONE, under) if len(terms) > 1 else product
        guards = _on_points(common, node)
        spoiling = [f for f in product.factors if _is_apart(f, guards, node) and may_spoil(f)]
        if not spoiling:
            continue
        beside = product_of(term, under, whole=True)
        factors = [f.expr for f in beside.factors]
        # Where a choice beside them takes zero they are multiplied by it: zero times infinity.
        if all(among(f.expr, factors) for f in spoiling):
            guards = _on_points(beside, node)
        if guards and not _has_points(node, guards, scope):
            one = Const(1, "int32")
            count = Reduce(builtin_reducer("sum", "int32"), (one,), node.axes, conjunction(guards))
            return call(GREATER, count, 0)
    return None


def spoils_outside(node: Reduce) -> bool:
    """Whether what a sum is multiplied by at each point of the result may be infinite, so that forms that take it out of the sum need all conditions on it."""
    if not node.is_sum:
        return False
    outer, _ = split_outer(product_of(node.exprs[0], conjuncts(node.where)).factors, node.axes)
    return any(map(may_spoil, outer))


def points_outside(node: Reduce) -> Expr | None:
    """The conditions on elements of arrays at the point of the result, where what is multiplied by there may be infinite; None where there are none."""
    if not spoils_outside(node):
        return None
    product = product_of(node.exprs[0], conjuncts(node.where))
    tests = [*product.guards, *(f.expr for f in product.factors if f.guard)]
    outside = [g for g in tests if reads_of(g) and not depends_on(g, node.axes)]
    return conjunction(outside) if outside else None


def points_shadow(guards: Sequence[Expr], reduced: Sequence[Axis], scope: Scope) -> Expr | None:
    """Where in ``scope`` a sum over ``reduced`` has a point at all; None where that is everywhere, or long to say."""
    conditions = [substitute(guard, dict(scope.table)) for guard in guards]
    known = [c for c in conditions if is_decidable(c)]
    free = {axis for c in known for axis in free_axes(c)}
    outer = tuple(d for d in scope.order if d in free and d not in set(reduced))
    found = IntegerSet((*outer, *reduced), known).shadow(outer) if outer else None
    return None if found is None or found is TRUE else found


def _on_points(product: Product, node: Reduce) -> list[Expr]:
    """The conditions of ``product`` on what ``node`` sums over."""
    tests = [*product.guards, *(f.expr for f in product.factors if f.guard)]
    return [g for g in tests if depends_on(g, node.axes)]


def _is_apart(factor: Factor, guards: Sequence[Expr], node: Reduce) -> bool:
    """Whether there is a condition on reduced axes that the factor does not depend on."""
    own = frozenset(node.axes).intersection(free_axes(factor.expr))
    return any(not depends_on(guard, own) for guard in guards)


def _has_points(node: Reduce, guards: Sequence[Expr], scope: Scope) -> bool:
    """Whether there surely is a point in the sum, whatever the other axes are."""
    table = dict(scope.table)
    conditions = [substitute(guard, table) for guard in guards]
    if not all(is_decidable(c) for c in conditions):
        return False
    free = {axis for c in conditions for axis in free_axes(c)}
    outer = tuple(d for d in scope.order if d in free)
    return IntegerSet((*outer, *node.axes), conditions).covers(outer)


def is_plain(members: Sequence[Factor]) -> bool:
    """Whether there are elements only: no function, and no position that is data, where NaN is read out of range."""
    return all(
        isinstance(f.expr, (Read, Const)) and not f.inverse and not reads_of(*f.expr.children)
        for f in members
    )


def spoils(members: Sequence[Factor], guard: Expr) -> bool:
    """Whether an operand may be infinite or NaN where ``guard`` fails, though the inputs are finite.

    A tensor that exists and stands alone is taken to be finite where positions exclude it, as padding does: matrices would be masked for each row.
    What planning has made a tensor of is a function that stands in the sum.
    """
    alone = len(members) == 1 and is_plain(members) and not _is_part(members[0].expr)
    return (bool(reads_of(guard)) or not alone) and any(map(may_spoil, members))


def _is_part(expr: Expr) -> bool:
    return isinstance(expr, Read) and isinstance(expr.tensor, (FewerAxes, Shared))


Key = tuple[frozenset[tuple[Expr, int]], int]


def guarded_reads(root: Expr, conditions: Sequence[Expr] = ()) -> frozenset[Read]:
    """The reads below ``root`` whose positions are data and in range wherever their values count.

    Args:
        conditions: where one of them does not hold, the value of ``root`` does not count.
    """
    wanted = [r for r in reads_of(root) if any(reads_of(i) for i in r.indices)]
    if not wanted:
        return frozenset()
    known: dict[Expr, frozenset[Key]] = {root: frozenset(key for c in conditions for key in _keys(c))}
    for node in reversed(list(postorder(root))):  # every node after all that it stands below
        own = known[node]
        for child, conditions in _edges(node):
            held = own | {key for c in conditions for key in _keys(c)}
            known[child] = known[child] & held if child in known else held
    return frozenset(r for r in wanted if _is_kept(r, known[r]))


def _edges(node: Expr) -> Iterator[tuple[Expr, list[Expr]]]:
    """The nodes below ``node``, each with the conditions outside of which its value does not count."""
    match node:
        case Call(op, (condition, taken, other)) if op is SELECT:
            yield condition, []
            yield taken, conjuncts(condition)
            yield other, []
        case Reduce():
            yield node.where, []
            for expr in node.exprs:
                yield expr, conjuncts(node.where)
        case _:
            for child in node.children:
                yield child, []


def _keys(condition: Expr) -> list[Key]:
    return [form.key for form in nonnegative_forms(condition)]


def _is_kept(read: Read, known: frozenset[Key]) -> bool:
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        if not reads_of(index):
            continue
        form = linear_or_none(index)
        if form is None:
            return False
        limits = [form, linear(as_expr(extent)) - form - Linear({}, 1)]
        if not all(limit.key in known for limit in limits):
            return False
    return True

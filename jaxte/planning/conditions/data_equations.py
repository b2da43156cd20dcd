"""Reductions under equations with data: what is chosen by an equation is read there, and what it says the place of is added there.

    sum over k of select(k == t[b], w[k, o], 0)         is   w[t[b], o], where t[b] is in range
    sum over k of cast(t[b] == k) * w[k, o]             is   the same
    sum over e of select(d[e] == n, m[e, o], 0)         is   sum over e of m[e, o] where d[e] == n, which is a scatter

An equation may stand in ``where=``, in a choice between a value and nothing, or as a factor that is 0 or 1. For an axis of the reduction it is solved
(:mod:`jaxte.algebra.data`), so that the reduction visits no other point; one for an axis of the result becomes a condition of the reduction,
as which it is recognised.

Conditions on data under which the one reader of a sum reads its elements come into the sum, if something in it may be infinite where they fail.
``s[c, i] = sum over k where N[i, k] of w[k] * sqrt(x[c, k])`` of ``select(M[c, i], s[c, i], 0)`` reads the elements ``x[c, k]`` for which some ``i`` fulfils both conditions.
As a product of matrices it would multiply the others by zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxte.algebra.data import Points, solve_data
from jaxte.algebra.data_conditions import with_conditions_around
from jaxte.algebra.product import Factor, multiplied, product_of
from jaxte.lang.expr import TRUE, ZERO, Axis, Call, Const, Expr, Read, Reduce, cast, conjunction, conjuncts
from jaxte.lang.graphs import among, identical
from jaxte.lang.operators import EQUAL, SELECT
from jaxte.lang.walk import depends_on, free_axes, postorder, reads_of, substitute
from jaxte.tensors.bodies.contexts import guards_of
from jaxte.tensors.shapes import as_extent, same_extent
from jaxte.tensors.tensor import Compute, Tensor

_BUILT_IN = ("sum", "prod", "max", "min")


def with_data_equations(node: Reduce, targets: Sequence[Axis]) -> tuple[Expr, Expr]:
    """A condition and a value: ``node`` is the value where it holds, and the identity of the reduction elsewhere.

    Args:
        node: a reduction in the body of a tensor.
        targets: the axes of that tensor.
    """
    conditions, value = _parts(node)
    if node.reducer.name not in _BUILT_IN or not any(_ties(c, node.axes) for c in conditions):
        return TRUE, node
    points = solve_data(Points(tuple(node.axes), tuple(conditions), value), targets)
    axes = [a for a in points.axes if isinstance(a, Axis)]
    value = cast(points.value, node.dtype)
    if not axes:
        return conjunction(points.conditions), value
    outside = [c for c in points.conditions if not depends_on(c, axes)]
    inside = [c for c in points.conditions if not among(c, outside)]
    if identical(axes, list(node.axes)) and (
        identical(list(points.conditions), conjuncts(node.where))
        or not any(_ties(c, targets) for c in inside)
    ):
        return TRUE, node
    return conjunction(outside), node.changed(exprs=(value,), axes=axes, where=conjunction(inside))


def _ties(condition: Expr, axes: Iterable[Axis]) -> bool:
    """Whether ``condition`` is an equation of data with something of ``axes``."""
    return (
        isinstance(condition, Call)
        and condition.op is EQUAL
        and bool(reads_of(condition))
        and depends_on(condition, list(axes))
    )


def _parts(node: Reduce) -> tuple[list[Expr], Expr]:
    """The conditions of ``node``, those in its element among them where one is such an equation, and what is reduced under them."""
    conditions, element = conjuncts(node.where), node.exprs[0]
    while isinstance(element, Call) and element.op.name == "cast" and element.args[0].weak:
        element = element.args[0]  # numbers without a dtype of their own
    if not any(_ties(n, node.axes) for n in postorder(element)):
        return conditions, node.exprs[0]
    if node.is_sum:
        product = product_of(element)
        tests = [c for f in product.factors for c in _tests(f)]
        if any(_ties(c, node.axes) for c in tests):
            factors = [f for f in product.factors if not _tests(f)]
            return [*conditions, *product.guards, *tests], multiplied(factors)
    elif (
        isinstance(element, Call)
        and element.op is SELECT
        and _is_number(element.args[2], node.reducer.identity[0])
    ):
        return [*conditions, *conjuncts(element.args[0])], element.args[1]
    return conditions, node.exprs[0]


def _is_number(expr: Expr, other: Expr) -> bool:
    return isinstance(expr, Const) and isinstance(other, Const) and bool(expr.value == other.value)


def _tests(factor: Factor) -> list[Expr]:
    """The conditions that ``factor`` is: 1 where they hold, and 0 elsewhere."""
    expr = factor.expr
    if factor.guard:
        return [expr]
    if (
        isinstance(expr, Call)
        and expr.op.name == "cast"
        and expr.args[0].dtype == "bool"
        and not factor.inverse
    ):
        return conjuncts(expr.args[0])
    return []


def bodies_where_read(order: Sequence[Tensor], outputs: Sequence[Tensor]) -> dict[Tensor, Expr]:
    """The sums of ``order`` under the conditions of the one read of them that there is."""
    places: dict[Tensor, list[tuple[Compute, Read]]] = {}
    for reader in order:
        if isinstance(reader, Compute):
            for read in reads_of(reader.body):
                places.setdefault(read.tensor, []).append((reader, read))
    number = {tensor: n for n, tensor in enumerate(order)}
    found: dict[Tensor, Expr] = {}
    for tensor in order:
        own = places.get(tensor, ())
        if not isinstance(tensor, Compute) or among(tensor, outputs) or len(own) != 1:
            continue
        if isinstance(tensor.body, Reduce) and reads_of(tensor.body.where) and tensor.override is None:
            conditions = _conditions_at(tensor, *own[0], number)
            body = with_conditions_around(tensor.body, conditions)
            if body is not tensor.body:
                found[tensor] = body
    return found


def _conditions_at(tensor: Compute, reader: Compute, read: Read, number: dict[Tensor, int]) -> list[Expr]:
    """What holds of an element of ``tensor`` that ``read`` reads in the body of ``reader``, by what is computed before."""
    table: dict[Expr, Expr] = {}
    for index, own in zip(read.indices, tensor.axes, strict=True):
        if not (isinstance(index, Axis) and index.lo is ZERO and same_extent(as_extent(index.hi), own.hi)):
            return []
        table[index] = own
    if len(table) < len(tensor.axes):
        return []
    held = guards_of(reader.body, {read}).get(read, ())
    return [
        substitute(c, table)
        for c in held
        if all(a in table for a in free_axes(c))
        and all(number.get(r.tensor, -1) < number[tensor] for r in reads_of(c))
    ]

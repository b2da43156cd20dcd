"""Reductions over the points that count, however their conditions and axes are spelled.

    sum over k of select(k // 4 == i, x[b, k], 0) * w[k]                         is   sum over r of x[b, 4 * i + r] * w[4 * i + r]
    sum over p of x[b, p] where 2 * p == i                                       is   select(i % 2 == 0, x[b, i // 2], 0)
    sum over k < 25 of x[b, k] * w[k] where k < 24 and k >= 2                    is   sum over r < 22 of x[b, r + 2] * w[r + 2]
    max over h, l of x[b, 2 * h + l] where i <= 2 * h + l and 2 * h + l < i + 5   is   max over r of x[b, i + r], r in [0, 5)

Choices between a value and zero are conditions. Equations between positions are solved, as zero elimination does for adjoints
(:mod:`jaxte.sets.solving.solve`). Axes end where conditions on them say so and are what the terms are read at: what is recognised by its axes is then
the same for each spelling. Bounds that move with the result are windows. Each step sees what the one before has found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from jaxte.algebra.product import may_be_infinite, multiplied, product_of
from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import FALSE, ONE, TRUE, Axis, Call, Const, Expr, Reduce, call, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.operators import AND, EQUAL, NOT, SELECT
from jaxte.lang.walk import depends_on, reads_of, substitute
from jaxte.planning.conditions.moving_windows import with_windows
from jaxte.planning.indices.digits import with_whole_axes
from jaxte.sets.conditions import narrowed, positive
from jaxte.sets.digits import straightened
from jaxte.sets.index_forms import difference, nonnegative_forms
from jaxte.sets.intervals import known
from jaxte.sets.isl_text import is_decidable
from jaxte.sets.solving.solve import simplify_domain
from jaxte.sets.transformation import Domain


def with_equations_solved(node: Reduce) -> tuple[Expr, Expr]:
    """A condition and a value: ``node`` is the value where it holds, and the identity of the reduction elsewhere.

    The value is a reduction over fewer points, or what is reduced where a single one is left.
    """
    known = [c for c in conjuncts(node.where) if is_decidable(c)]
    if not node.reducer.ignores_order:
        return TRUE, node
    if not any(_is_equation(c, node.axes) for c in known):
        return TRUE, node
    found = simplify_domain(Domain(node.axes, known))
    if found.is_empty:
        return FALSE, node.reducer.identity[0]
    axes = [a for a in found.new.variables if isinstance(a, Axis)]
    if _size(axes) >= _size(node.axes):
        return TRUE, node
    table: dict[Expr, Expr] = dict(found.old_to_new)
    on_data = [straightened(substitute(c, table)) for c in conjuncts(node.where) if not is_decidable(c)]
    conditions = [*found.new.conditions, *on_data]
    outside = [c for c in conditions if not depends_on(c, axes)]
    inside = conjunction([c for c in conditions if depends_on(c, axes)])
    expr = straightened(substitute(node.exprs[0], table))
    return conjunction(outside), node.changed(exprs=(expr,), axes=axes, where=inside) if axes else expr


def _is_equation(condition: Expr, axes: Iterable[Axis]) -> bool:
    """Whether ``condition`` is an equation that one of ``axes`` may be solved for.

    Congruences are none: what stands between zeros, ``x[(i + k) // 2]`` where ``(i + k) % 2 == 0``, has forms of its own.
    """
    if not (isinstance(condition, Call) and condition.op is EQUAL and depends_on(condition, axes)):
        return False
    form = difference(condition)
    return form is not None and not all(isinstance(division(a), Remainder) for a in form.terms)


def _size(axes: Iterable[Axis]) -> tuple[int, int]:
    """How many extents are symbolic, and the product of the others."""
    extents = [a.extent for a in axes]
    numbers = [int(e.value) for e in extents if isinstance(e, Const)]  # type: ignore[arg-type]
    return len(extents) - len(numbers), prod(numbers)


def with_tight_axes(node: Reduce) -> Reduce:
    """``node`` over axes that begin and end where its conditions on each of them say; without those of one value, if others are left."""
    if not node.reducer.ignores_order:
        return node
    conditions = conjuncts(node.where)
    ends = {axis: found for axis in node.axes if (found := _ends(axis, conditions)) is not None}
    table: dict[Expr, Expr] = {}
    axes: list[Axis] = []
    for axis in node.axes:
        own = _own(axis, *ends[axis]) if axis in ends else axis
        if own is not axis:
            table[axis] = own + ends[axis][0]
        axes.append(own)
    if len(axes) > 1 and (units := [a for a in axes if a.extent is ONE]):
        kept = [a for a in axes if a.extent is not ONE] or units[:1]
        to_start: dict[Expr, Expr] = {a: a.lo for a in units if not among(a, kept)}
        table = {a: substitute(e, to_start) for a, e in table.items()} | to_start
        axes = kept
    left = [c for c in conditions if not _is_met(c, ends)]
    if not table and len(left) == len(conditions):
        return node
    where, *exprs = (straightened(substitute(e, table)) for e in (conjunction(left), *node.exprs))
    return node.changed(exprs=exprs, axes=axes, where=where)


def _own(axis: Axis, low: int, high: int) -> Axis:
    """An axis for the values of ``axis`` from ``low`` to ``high``: this one if they are all of its own."""
    if (low, high) == (known(axis.lo), known(axis.hi)):
        return axis
    return Axis(axis.name, 0, high - low, reduction=True)


def _ends(axis: Axis, conditions: Sequence[Expr]) -> tuple[int, int] | None:
    """Where ``axis`` begins and ends under the conditions on it alone; None where this depends on sizes, or nothing is left."""
    low, high = known(axis.lo), known(axis.hi)
    if low is None or high is None:
        return None
    last = high - 1
    for condition in conditions:
        for form in nonnegative_forms(condition):
            if len(form.terms) == 1 and (factor := form.coefficient(axis)):
                low, last = narrowed((low, last), factor, form.constant)
    return (low, last + 1) if low <= last else None


def _is_met(condition: Expr, ends: Mapping[Axis, tuple[int, int]]) -> bool:
    """Whether ``condition`` is about one axis alone, whose ``ends`` are it."""
    forms = nonnegative_forms(condition)
    return bool(forms) and all(len(form.terms) == 1 and next(iter(form.terms)) in ends for form in forms)


def at_counted_points(node: Reduce) -> tuple[Expr, Expr]:
    """A condition and a value: ``node`` is the value where it holds, and the identity of the reduction elsewhere.

    A choice in a product of several tensors is a condition only where that leaves fewer points to count: what it leaves out may be infinite,
    and would be multiplied by zero where the condition becomes a mask of one factor.
    """
    chosen = _with_choices_as_conditions(node)
    if chosen is not node:
        outside, value, fewer = _counted(chosen)
        if fewer or not node.is_sum or len(reads_of(chosen.exprs[0])) < 2:
            return outside, value
    outside, value, _ = _counted(node)
    return outside, value


def _counted(node: Reduce) -> tuple[Expr, Expr, bool]:
    """The condition, the value, and whether an equation or a window leaves fewer points than ``node`` is written over."""
    outside, solved = with_equations_solved(node)
    if not isinstance(solved, Reduce):
        return outside, solved, True
    whole = with_whole_axes(with_tight_axes(solved))
    windows = with_windows(whole)
    if windows is whole:
        return outside, whole, solved is not node
    return outside, with_whole_axes(windows), True


def _with_choices_as_conditions(node: Reduce) -> Reduce:
    """A reduction of choices between a value and its identity, zero of a sum, as one of the value where it is chosen, if positions decide that."""
    if not node.reducer.ignores_order:
        return node
    where, expr = _chosen(node.where, node.exprs[0], node.reducer.identity[0])
    product = product_of(expr)
    if node.is_sum and product.guards and not any(map(may_be_infinite, product.factors)):
        value = multiplied(product.factors)
        if (value.dtype, value.weak) == (expr.dtype, expr.weak):
            where, expr = conjunction([*conjuncts(where), *map(positive, product.guards)]), value
    return node if expr is node.exprs[0] else node.changed(exprs=(expr,), where=where)


def _chosen(where: Expr, expr: Expr, identity: Expr) -> tuple[Expr, Expr]:
    """``where`` with the tests of the choices that all of ``expr`` is, and what is chosen."""
    while isinstance(expr, Call) and expr.op is SELECT:
        test, taken, other = expr.args
        if _is(taken, identity):
            test, taken, other = call(NOT, test), other, taken
        if not _is(other, identity) or taken.dtype != expr.dtype or not is_decidable(test):
            break
        where, expr = call(AND, where, positive(test)), taken
    return where, expr


def _is(expr: Expr, identity: Expr) -> bool:
    return isinstance(expr, Const) and isinstance(identity, Const) and expr.value == identity.value

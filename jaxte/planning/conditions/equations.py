"""Reductions under equations between positions, over the points that solve these.

    sum over p of x[b, p] where 2 * p == i               is   select(i % 2 == 0, x[b, i // 2], 0)
    sum over u of x[b, u] where u // 2 == i              is   sum over r of x[b, 2 * i + r]

It is what zero elimination does for adjoints (:mod:`jaxte.sets.solving.solve`), for definitions as they are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from jaxte.lang.divisions import Remainder, division
from jaxte.lang.expr import FALSE, TRUE, Axis, Call, Const, Expr, Reduce, conjunction, conjuncts
from jaxte.lang.operators import EQUAL
from jaxte.lang.walk import depends_on, substitute
from jaxte.planning.indices.digits import straightened
from jaxte.sets.index_forms import difference
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
    return conjunction(outside), Reduce(node.reducer, (expr,), axes, inside) if axes else expr


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

"""The limits of positions that are data: the conditions that keep them in range, and those that facts and equations imply."""

from __future__ import annotations

from jaxte.algebra.data import Points, data_readings
from jaxte.algebra.value_ranges import is_kept_within
from jaxte.lang.expr import Call, Expr, Read, as_expr, call, conjunction, conjuncts
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

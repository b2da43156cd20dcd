"""Extrema over windows of several dimensions, one dimension after the other: windows of windows.

    y[i, j] = max over p, q of x[i + p, j + q]   is   max over p of r[i + p, j]   with   r[m, j] = max over q of x[m, j + q]

As definitions, and not only as a form, since the adjoints follow: which of ``a * b`` elements is the first that a window attains is found by ``a + b``
comparisons for each element, and what flows back is the sum of as many choices. The first of equal elements, in the order of the axes, is in the first row
that attains the extremum and is the first one there, so that ties are those of the whole; ties that share evenly are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jaxte.lang.expr import Axis, Read, Reduce, conjunction, conjuncts
from jaxte.lang.graphs import among
from jaxte.lang.walk import depends_on
from jaxte.planning.asked import intermediates
from jaxte.planning.indices.fewer_elements import at_terms
from jaxte.sets.intervals import known

_WORTH = 1.3  # how much less has to be met
_FEWEST = 3  # positions along each axis


def one_axis_apart(node: Reduce, axes: Sequence[Axis], name: str) -> Reduce:
    """``node``, or the same over its first axes, of a tensor of extrema over its last one.

    Args:
        node: a reduction at the points of ``axes``.
        name: what the tensor is called after.
    """
    costs = intermediates()
    if (
        not costs.extrema
        or node.reducer.name not in ("max", "min")
        or node.reducer.ties not in ("first", "last")
    ):
        return node
    sizes = [known(a.extent) for a in node.axes]
    if len(sizes) < 2 or not isinstance(node.exprs[0], Read) or any(s is None or s < _FEWEST for s in sizes):
        return node
    *others, last = [s for s in sizes if s is not None]
    if prod(others) * last < _WORTH * (sum(others) + last + costs.element):
        return node
    *before, inner = node.axes
    conditions = conjuncts(node.where)
    along = [c for c in conditions if depends_on(c, (inner,))]
    if any(depends_on(c, before) for c in along):
        return node
    apart = [c for c in conditions if not among(c, along)]
    row = Reduce(node.reducer, node.exprs, (inner,), conjunction(along), node.position)
    found = at_terms(row, (*axes, *before), apart, name)
    if found is row:
        return node  # each window has elements of its own
    return one_axis_apart(
        Reduce(node.reducer, (found,), before, conjunction(apart), node.position), axes, name
    )

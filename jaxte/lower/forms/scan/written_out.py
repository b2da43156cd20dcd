"""A cumulative reduction of a few positions, each chosen where it counts: ``x[:, :1] + where(i >= 1, x[:, 1:2], 0) + where(i >= 2, x[:, 2:3], 0)``.

One loop over the result, in vectors whatever the axis is, in which nothing waits for a position before. XLA makes windows of ``jnp.cumsum``, and of pieces that are put
side by side an array of each.
"""

from __future__ import annotations

from jaxte.lang.expr import as_expr
from jaxte.lang.operators import GREATER_EQUAL, LESS_EQUAL, SELECT
from jaxte.lower.arrays.elementwise import Apply, Arange, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import OPS, identity_of
from jaxte.lower.arrays.views import ALL, NEW, Entry, Index, Range
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.sets.intervals import extent_of


def written_out(body: Body, spec: ScanSpec, scan: Scan, value: Node) -> Node:
    """The cumulative values of ``value`` along the axis of ``scan``, of which the length is known."""
    own = body.shared(value)
    extent, others = own.shape[scan.axis], len(own.shape) - scan.axis - 1
    entries: tuple[Entry, ...] = (*(NEW,) * scan.axis, ALL, *(NEW,) * others)
    positions = body.shared(apply_steps(Arange(0, extent), [Index(entries)]), f"{body.target}_at")
    first, *numbers = range(extent_of(extent))[:: -1 if scan.reverse else 1]
    result = _at(own, scan, first)
    for k in numbers:
        counts = Apply(LESS_EQUAL if scan.reverse else GREATER_EQUAL, (positions, Number(k)))
        chosen = Apply(SELECT, (counts, _at(own, scan, k), identity_of(spec.reducer, 0)))
        so_far = result if k == numbers[0] else body.shared(result)
        result = Apply(OPS[spec.reducer.name], (so_far, chosen))
    return result


def _at(own: Node, scan: Scan, position: int) -> Node:
    """The elements at one position, which all results are beside."""
    entry = Range(as_expr(position) if position else None, as_expr(position + 1))
    return apply_steps(own, [Index((*(ALL,) * scan.axis, entry))])

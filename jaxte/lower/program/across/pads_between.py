"""Arrays whose elements alternate, as pads that are added: each with zeros where the others' elements are, in place of a stack in another shape.

    jnp.stack([a, b], axis=1).reshape(2 * n)    is    lax.pad(a, 0.0, ((0, 1, 1),)) + lax.pad(b, 0.0, ((1, 0, 1),))

Where arrays side by side are an array of their own, and a pad is computed in what reads it, these are no arrays.
"""

from __future__ import annotations

from functools import reduce

from jaxte.lang.dtypes import is_float
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.operators import ADD
from jaxte.lower.arrays.elementwise import Apply, Number, Typed
from jaxte.lower.arrays.loops import Each, Stacked
from jaxte.lower.arrays.node import Node, rewritten
from jaxte.lower.arrays.steps import Reshape
from jaxte.lower.arrays.views import Spread, View
from jaxte.sets.intervals import known

_MOST = 4  # arrays, each of which all others are padded for


def with_pads_between(source: Node) -> Node:
    """``source`` in which what alternates is padded and added."""
    return rewritten(source, lambda node: _added(node) or node)


def _added(node: Node) -> Node | None:
    """``node`` as a sum of pads, if it is a stack whose last dimension but one, and its own, are one."""
    match node:
        case View(Stacked(parts, axis), Reshape()) if (
            is_float(node.dtype) and axis > 0 and 1 < len(parts) <= _MOST
        ):
            pass
        case _:
            return None
    if any(isinstance(p, Each) for p in parts):
        return None
    own, found = [[known(e) for e in shape] for shape in (parts[0].shape, node.shape)]
    if None in own or None in found or len(own) != len(found):
        return None
    count, dim = len(parts), axis - 1
    if found != [(e or 0) * (count if n == dim else 1) for n, e in enumerate(own)]:
        return None

    def padded(part: Node, before: int) -> Node:
        widths: list[tuple[Expr, Expr, int]] = [(as_expr(0), as_expr(0), 0)] * len(own)
        widths[dim] = (as_expr(before), as_expr(count - 1 - before), count - 1)
        return Spread(part, Typed(Number(0), node.dtype), tuple(widths))

    return reduce(lambda a, b: Apply(ADD, (a, b)), [padded(p, n) for n, p in enumerate(parts)])

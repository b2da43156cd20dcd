"""Choices by whether there is a step before, within those by other conditions.

    ey[t, i] = (ey[t - 1, i] if t >= 1 and i >= 1 else fict[t] if i == 0 else ey0[i])
    ey[t, i] = ((ey[t - 1, i] if t >= 1 else ey0[i]) if i >= 1 else fict[t])

The inner choice is between a state and what it begins with, which a loop makes by handing that to its first step.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from jaxte.frontends.loops.rotated import Row, simplified
from jaxte.lang.expr import Call, Expr, Read, call, conjunction, conjuncts
from jaxte.lang.functions import logical_not
from jaxte.lang.graphs import among
from jaxte.lang.operators import SELECT
from jaxte.lang.walk import reads_of, rewrite, with_indices
from jaxte.sets.affine import normal
from jaxte.sets.index_forms import is_index
from jaxte.tensors.recurrences.earlier import same_condition
from jaxte.tensors.tensor import Tensor


def with_firsts_inside(row: Row, states: Collection[Tensor]) -> Row:
    """``row`` with such choices, and with positions in one form."""
    body = with_indices(row.body, lambda i: normal(i) if is_index(i) else i)
    return replace(row, body=rewrite(body, lambda node: _inside(node, row, states)))


def _inside(node: Expr, row: Row, states: Collection[Tensor]) -> Expr:
    match node:
        case Call(op, (test, Read() as taken, Call(inner, _) as other)) if (
            op is SELECT is inner and taken.tensor in states
        ):
            parts = conjuncts(test)
            first = [c for c in parts if same_condition(c, row.clock >= 1)]
            rest = conjunction([c for c in parts if not among(c, first)])
            if not 0 < len(first) < len(parts) or reads_of(rest):
                return node
            taken_there, elsewhere = (
                simplified(other, row.axes, [rest]),
                simplified(other, row.axes, [logical_not(rest)]),
            )
            if taken_there is not other and elsewhere is not other:
                return call(SELECT, rest, call(SELECT, first[0], taken, taken_there), elsewhere)
    return node

"""A dimension of a few positions written out: what is computed at each of them is combined.

Definitions are written out by ``rewrites/short_axes.py``; here it is values, where how a dimension is read decides.
"""

from __future__ import annotations

from collections.abc import Callable

from jaxte.lang.expr import Axis
from jaxte.lang.operators import ADD, Op
from jaxte.lower.body.assignment import Task
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.views.scope import Scope


def combined(body: Body, op: Op, dim: Axis, scope: Scope, dtype: str, make: Callable[[Scope], Task]) -> Task:
    """What ``make`` gives at each position of ``dim``, combined by ``op`` one after the other, zeros left out of sums."""
    total: Value | None = None
    for at in scope.at_each(dim):
        value = yield from make(at)
        if total is None or (op is ADD and _is_zero(total)):
            total = value
        elif op is not ADD or not _is_zero(value):
            total = body.combine(op, [total, value], (dtype, False), scope)
    assert total is not None
    return total


def _is_zero(value: Value) -> bool:
    return value.literal and value.number == 0

"""Points at which an index leaves its range, asked of isl or looked for one by one."""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.lang.budget import (
    unbounded,
)
from jaxte.lang.errors import IndexExpressionError
from jaxte.lang.expr import (
    ZERO,
    Expr,
)
from jaxte.sets.domain import IntegerSet, left_open
from jaxte.sets.tabulate import Open, evaluate_index, first_of, quotients

_FEW_QUOTIENTS = 2

_SLOWER = 20  # times as long an operation of isl takes among many quotients

_UNDECIDED = (
    "whether it stays in range takes more work to decide than there is a budget for; keep it in range by "
    "te.minimum(te.maximum(index, 0), extent - 1), which changes nothing where it does, or read at a tensor of positions"
)


def find_violation(
    variables: Sequence[Expr], conditions: Sequence[Expr], index: Expr, extent: Expr
) -> tuple[dict[Expr, int], int] | None:
    """A point at which ``index`` leaves ``[0, extent)``, and the value it has there.

    Where isl leaves open whether there is one, the points are looked at one by one.

    Raises:
        IndexExpressionError: there are too many of them, or sizes are symbols.
    """
    for outside in (index >= extent, index < ZERO):
        with unbounded():
            point = _first(variables, [*conditions, outside])
        if point is not None:
            return point, evaluate_index(index, point)
    return None


def _first(variables: Sequence[Expr], conditions: Sequence[Expr]) -> dict[Expr, int] | None:
    """A point at which ``conditions`` hold: asked of isl, but of many quotients in each other, for which that takes long."""
    nested = quotients(conditions) > _FEW_QUOTIENTS
    try:
        if nested:
            return first_of(variables, conditions)
    except Open:
        pass
    before = left_open()
    point = IntegerSet(variables, conditions).sample(_SLOWER if nested else 1)
    if point is not None or left_open() == before:
        return point
    try:
        return first_of(variables, conditions)
    except Open:
        raise IndexExpressionError(_UNDECIDED) from None

"""Comparisons of larger values as several: both sides of ``maximum(a, b) <= c``, as ``abs(e) <= c`` is one."""

from __future__ import annotations

from collections.abc import Iterator

from jaxte.lang.expr import Call, Expr, call
from jaxte.lang.operators import ABS, LESS, LESS_EQUAL, MAXIMUM
from jaxte.sets.index_forms import is_index


def halves(condition: Expr) -> Iterator[Expr]:
    """Conditions that hold together where ``condition`` does: itself, if it is no comparison of a maximum."""
    match condition:
        case Call(op, (Call(inner, args), bound)) if op in (LESS, LESS_EQUAL) and is_index(args[0]):
            if inner is MAXIMUM or inner is ABS:
                for side in args if inner is MAXIMUM else (args[0], -args[0]):
                    yield call(op, side, bound)
                return
    yield condition

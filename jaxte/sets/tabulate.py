"""Conditions on positions as arrays of truth values, for axes of known ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxte.lang.expr import Axis, Call, Const, Expr
from jaxte.lang.walk import postorder

_OPS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "negative": np.negative,
    "multiply": np.multiply,
    "floor_divide": np.floor_divide,
    "mod": np.remainder,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "select": np.where,
}


def tabulated(expr: Expr, at: Mapping[Expr, np.ndarray]) -> np.ndarray | None:
    """``expr`` where its axes take the values ``at``, broadcast; None where something else than positions decides.

    >>> i = te.reduce_axis((0, 4), "i")
    >>> tabulated(i // 2 < 1, {i: np.arange(4)}).tolist()
    [True, True, False, False]
    """
    memo: dict[Expr, Any] = {}
    for node in postorder(expr):
        match node:
            case Const(value):
                memo[node] = np.asarray(value)
            case Axis() if node in at:
                memo[node] = at[node]
            case Call(op, args) if op.name in _OPS:
                memo[node] = _OPS[op.name](*(memo[a] for a in args))
            case _:
                return None
    return np.asarray(memo[expr])

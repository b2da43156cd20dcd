"""What arrays over all pairs are outside of a band: the number that an elementwise function makes of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.dimensions import REDUCTIONS
from jaxte.frontends.jaxpr.equations.steps import Step
from jaxte.lang.dtypes import is_inexact


class _Row(Enum):
    NUMBER = "one number of each row"


BY_ROW = _Row.NUMBER
"""What stands for a number that depends on the row."""


@dataclass(frozen=True)
class Form:
    """An array over all pairs: its dimensions of rows and of columns, and the number that it has outside of the band, or :data:`BY_ROW`."""

    rows: int
    columns: int
    off: Any


NEUTRAL = {"reduce_sum": 0, "reduce_max": -inf, "reduce_min": inf, "dot_general": 0}
_NO_SCORE = -1e30  # which no sum of products in range is, so that the exponential of it less a score is 0
_AS_IT_IS = ("broadcast_in_dim", "transpose", "reshape", "squeeze", "expand_dims", "convert_element_type", "stop_gradient", "copy")  # fmt: skip
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_AS_IT_IS, lambda x: x),
    **dict(add=np.add, sub=np.subtract, mul=np.multiply, div=np.divide, max=np.maximum, min=np.minimum),
    **dict(
        exp=np.exp, exp2=np.exp2, neg=np.negative, abs=np.abs, square=np.square, tanh=np.tanh, sign=np.sign
    ),
    **{"not": np.logical_not, "and": np.logical_and, "or": np.logical_or},
}
# what has finite slopes everywhere, so that zeros beside the ends of an array do no harm
_SMOOTH = frozenset(
    [*_AS_IT_IS, "add", "sub", "mul", "neg", "max", "min", "exp", "exp2", "abs", "sign", "square", "tanh", "logistic", "select_n",
     "dot_general", "gather", "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "reduce_sum"]
)  # fmt: skip


def off_of(step: Step, offs: Sequence[Any], taken_in_rows: bool) -> Any:
    """What the result is where operands are ``offs``, numbers or None for what is not one number; None where nothing says that it is one.

    Args:
        taken_in_rows: whether ``step`` is a choice that takes something in each row, whatever the arguments are: beside scores a number far below all of them
            is as good as -inf.
    """
    if step.name in REDUCTIONS:
        return offs[0] if step.name in NEUTRAL and offs[0] == NEUTRAL[step.name] == 0 else None
    if step.name == "select_n":
        return _chosen(offs, taken_in_rows)
    if step.name in ("mul", "and", "dot_general") and any(off is not None and off == 0 for off in offs):
        return 0
    if step.name == "or" and any(off is not None and off == 1 for off in offs):
        return True
    if step.name == "div" and offs[0] is not None and offs[0] == 0:
        return 0
    if step.name in ("add", "sub") and offs[0] == -inf and offs[1] is None:
        return -inf
    if step.name == "add" and offs[1] == -inf and offs[0] is None:
        return -inf
    row = _OF_NUMBERS.get(step.name)
    if row is None or any(not _is_number(off) for off in offs):
        return None
    with np.errstate(all="ignore"):
        found = row(*offs)
    return None if np.isnan(found) else np.asarray(found).item()


def _chosen(offs: Sequence[Any], taken_in_rows: bool) -> Any:
    which, *cases = offs
    if not _is_number(which):
        return cases[0] if all(_is_number(case) and case == cases[0] for case in cases) else None
    found = cases[int(which)]
    if taken_in_rows and _is_number(found) and not isinstance(found, bool) and found <= _NO_SCORE:
        return -inf
    return found


def _is_number(off: Any) -> bool:
    return off is not None and off is not BY_ROW


def is_harmless(step: Step) -> bool:
    """Whether ``step`` has finite slopes at zeros, which stand beside the ends of an array in blocks."""
    if step.name == "div":
        return step.inputs[1].known is not None
    if step.name == "integer_pow":
        return bool(step.eqn.params["y"] >= 0)
    return step.name in _SMOOTH or not is_inexact(step.outputs[0].dtype)

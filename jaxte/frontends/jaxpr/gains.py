"""What raising gains: the steps whose derivative index notation writes better than JAX's transposes, and those it does not."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from jaxte.frontends.jaxpr.steps import Slot, Step
from jaxte.lang.dtypes import is_float

_SMALLEST = 1024  # elements below which nothing is to be gained
_FIRST_ORDER = {
    "reduce_window_sum": "the adjoint of a sum over windows is one",
    "reduce_window_max": "each element finds the windows that it wins, without select_and_scatter",
    "reduce_window_min": "each element finds the windows that it wins, without select_and_scatter",
    "cumsum": "the adjoint is a cumulative sum from the other end, in one pass",
    "cumprod": "the adjoint is a recurrence from the other end",
    "cummax": "the adjoint is a recurrence from the other end",
    "cummin": "the adjoint is a recurrence from the other end",
    "gather": "the positions are index expressions: no scatter",
    "scatter": "a choice by position in place of a scatter",
    "scatter-add": "a choice by position in place of a scatter",
    "scatter-mul": "a choice by position in place of a scatter",
    "dynamic_update_slice": "a choice by position in place of a copy",
}


def keeps(step: Step) -> str:
    """Why a step that has a rule stays as it is; empty where it need not."""
    if step.name == "dot_general":
        return "a product of matrices, which XLA and its own derivative do well"
    if step.name == "conv_general_dilated" and not _slow_convolution(step):
        return "a dense convolution, which XLA and its own derivative do well"
    if any(slot.dtype.startswith("complex") for slot in (*step.inputs, *step.outputs)):
        return "complex numbers"
    return ""


def gain_of(step: Step) -> str:
    """What raising ``step`` gains in reverse mode; empty where nothing."""
    if not _differentiated(step) or max(map(_elements, (*step.inputs, *step.outputs))) < _SMALLEST:
        return ""
    if step.name in _FIRST_ORDER:
        return _FIRST_ORDER[step.name] if _positions_known(step) else ""
    if step.name == "conv_general_dilated":
        return _slow_convolution(step)
    if step.name == "slice" and overlapping(step):
        return "overlapping slices: the adjoint is a stencil"
    if step.name == "concatenate" and _slices_of_one(step):
        return "slices of one array side by side: one read, and the adjoint is one"
    return ""


def _differentiated(step: Step) -> bool:
    return any(is_float(slot.dtype) and slot.known is None for slot in step.inputs)


def _elements(slot: Slot) -> int:
    return prod(slot.shape)


def _positions_known(step: Step) -> bool:
    if step.name in ("gather", "scatter", "scatter-add", "scatter-mul"):
        return step.inputs[1].known is not None
    if step.name == "dynamic_update_slice":
        return all(s.known is not None for s in step.inputs[2:])
    return True


def _slow_convolution(step: Step) -> str:
    p = step.eqn.params
    if p["feature_group_count"] > 1:
        return "a convolution in groups, which is slices multiplied and added"
    if any(d > 1 for d in p["lhs_dilation"]):
        return "a convolution of an array with zeros between its elements"
    return ""


def overlapping(step: Step) -> bool:
    """Whether another slice of the same array shares elements with this one."""
    (source,) = step.inputs
    own = _box(step)
    for other in source.readers:
        if other is not step and other.name == "slice" and _meet(own, _box(other)):
            return True
    return False


def _box(step: Step) -> Sequence[tuple[int, int]]:
    p: Any = step.eqn.params
    return list(zip(p["start_indices"], p["limit_indices"], strict=True))


def _meet(a: Sequence[tuple[int, int]], b: Sequence[tuple[int, int]]) -> bool:
    return all(
        low < other_high and other_low < high
        for (low, high), (other_low, other_high) in zip(a, b, strict=True)
    )


def _slices_of_one(step: Step) -> bool:
    """Whether two parts at least are slices of one array, as those of a roll or of the ends that are repeated."""
    sources = [
        slot.origin.inputs[0] if slot.origin is not None and slot.origin.name == "slice" else slot
        for slot in step.inputs
    ]
    return len(sources) > 1 and len(set(map(id, sources))) < len(sources)

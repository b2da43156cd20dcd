"""What raising gains: the steps whose derivative index notation writes better than JAX's transposes, and those it does not."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.gains.convolutions import is_left_to_scatter, moves_along_rows, slow_convolution
from jaxte.frontends.jaxpr.gains.matrices import is_small_product
from jaxte.frontends.jaxpr.gains.parts import (
    band_of,
    is_read_in_part,
    known_factors,
    selection_of,
    sums_diagonal,
)
from jaxte.frontends.jaxpr.gains.shifts import overlaps, reduces_shifts
from jaxte.frontends.jaxpr.gains.sums import (
    before_broadcast,
    elements,
    is_counted,
    is_differentiated,
    is_pairwise,
    sums_beside_ends,
    sums_shifts,
)
from jaxte.lang.dtypes import is_complex
from jaxte.lang.limits import FEW_POSITIONS, LEVELS, MOST_LARGER, MOST_PARTS, SMALLEST

# reads of a row of a table by pairs, above which it is left: 0.4 to 0.6 of JAX's speed where it is added at 64, in products at 124
_MOST_READS, _MOST_ADDED = 64, 32
DEAR = frozenset(
    [
        "exp", "exp2", "log", "log2", "log1p", "expm1", "tanh", "logistic", "pow", "sin", "cos", "tan",
        "erf", "erfc", "lgamma", "digamma",
    ]
)  # fmt: skip
_STRONG = {
    "reduce_window_sum": "the adjoint of a sum over windows is one",
    "reduce_window_max": "each element finds the windows that it wins, without select_and_scatter",
    "reduce_window_min": "each element finds the windows that it wins, without select_and_scatter",
    "cumsum": "the adjoint is a cumulative sum from the other end, in one pass",
    "cumprod": "the adjoint is a recurrence from the other end",
    "cummax": "the adjoint is a recurrence from the other end",
    "cummin": "the adjoint is a recurrence from the other end",
    "cumlogsumexp": "the adjoint is a recurrence from the other end",
    "gather": "the positions are index expressions: no scatter",
}
SCATTERS = ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-max", "scatter-min")
SHIFTS = {
    "slice": "a slice",
    "concatenate": "slices side by side",
    "pad": "a pad",
    **dict.fromkeys(SCATTERS, "a choice by position"),
    "dynamic_update_slice": "a choice by position",
}
_OF_REALS = frozenset(
    ["max", "min", "reduce_max", "reduce_min", "argmax", "argmin", "cumsum", "cumprod", "reduce_window_sum"]
)
_POSITIONS = {"gather": 1, **dict.fromkeys(SCATTERS, 1)}


def keeps(step: Step) -> str:
    """Why a step that has a rule stays as it is; empty where it need not."""
    if step.name == "dot_general" and not (
        any(_is_framed(s) or _is_small(s) for s in step.inputs)
        or _is_part(step)
        or _has_taps(step)
        or _has_factor(step, selection_of)
        or is_small_product(step)
    ):
        return "a product of matrices, which XLA and its own derivative do well"
    if step.name == "conv_general_dilated" and not slow_convolution(step):
        return "a dense convolution, which XLA and its own derivative do well"
    if step.name == "rem":
        return "a remainder, which XLA and its own derivative do well: in index notation it is computed again for its slopes"
    if step.name == "tile":
        return "elements repeated, whose sum XLA does well"
    if _is_repeat(step) and not _of_windows(step.inputs[0]) and not is_counted(step.outputs[0]):
        return "elements repeated, whose sum XLA does well"
    return ""


def has_complex(step: Step) -> bool:
    """Whether a step reads or makes complex numbers."""
    return any(is_complex(slot.dtype) for slot in (*step.inputs, *step.outputs))


def is_foreign(step: Step) -> str:
    """Why a step has to stay as it is, whatever it would gain; empty where it need not."""
    return "of real numbers alone in index notation" if step.name in _OF_REALS and has_complex(step) else ""


def gain_of(step: Step) -> str:
    """What raising ``step`` may gain in reverse mode; empty where nothing."""
    if not is_differentiated(step) or max(map(elements, (*step.inputs, *step.outputs))) < SMALLEST:
        return ""
    if step.name == "slice" and not overlaps(step):
        return ""
    found = strong(step)
    if found or step.name not in SHIFTS or not planned_facts().transposes_apart:
        return found
    return SHIFTS[step.name] if _positions_known(step) else ""


def strong(step: Step) -> str:
    """What raising ``step`` gains even by itself."""
    if step.name == "conv_general_dilated":
        return slow_convolution(step)
    if step.name == "dot_general":
        if any(map(_is_framed, step.inputs)):
            return "a product with overlapping parts of an array: a banded product"
        if _has_factor(step, selection_of):
            return "a product with a known matrix that chooses elements, which is a read"
        if _has_taps(step):
            return "a product with a known matrix of few numbers in each row, which is a few taps"
        if is_small_product(step):
            return "a product of small matrices, many times: written out, it is part of the loop around it"
        return "a product of which a part is read, and only that is computed" if _is_part(step) else ""
    if reduces_shifts(step):
        return "a reduction along a stack of shifts, which is one over windows"
    if step.name == "sub":
        return "differences of all pairs, summed without being kept" if is_pairwise(step) else ""
    if planned_facts().transposes_apart and (sums_beside_ends(step) or sums_shifts(step)):
        return "a sum beside a few elements of what is summed: one number flows back along the axis, and others to these"
    if _is_repeat(step) and is_counted(step.outputs[0]):
        return "elements repeated, of which only a sum is taken: each is computed once, and counted"
    if step.name == "cumsum" and not planned_facts().transposes_apart and not _is_read_in_parts(step):
        return ""
    if step.name == "reduce_window_sum" and planned_facts().moves_lanes_apart and moves_along_rows(step):
        return ""
    if step.name in ("reduce_window_max", "reduce_window_min") and is_left_to_scatter(step):
        return ""
    return _STRONG.get(step.name, "") if _positions_known(step) else ""


def reduces(step: Step) -> bool:
    """Whether ``step`` is a reduction to more than one number, and not one along a diagonal."""
    # Elements that a reduction takes together with the shifts before it.
    return (
        not sums_diagonal(step)
        and step.name.startswith(("reduce_", "arg"))
        and not step.name.startswith("reduce_window")
        and step.outputs[0].shape != ()
        and elements(step.inputs[0]) > FEW_POSITIONS * elements(step.outputs[0])
    )


def _is_read_in_parts(step: Step) -> bool:
    """Whether slices of a cumulative sum are read, whose differences are sums over windows."""
    return any(reader.name == "slice" for reader in step.outputs[0].readers)


def _is_part(step: Step) -> bool:
    """Whether a matrix product is read in part only, so that this part is all that is computed."""
    return prod(step.outputs[0].shape) >= SMALLEST and is_read_in_part(step)


def _has_factor(step: Step, asked: Callable[[np.ndarray], object | None]) -> bool:
    """Whether the result is large, and one operand a known matrix of the kind ``asked`` for."""
    large = max(map(elements, step.outputs)) >= SMALLEST
    return large and any(asked(matrix) is not None for matrix in known_factors(step))


def _has_taps(step: Step) -> bool:
    """Whether a product with a known matrix is written as few taps, which platforms with a unit for products have no use for."""
    return not planned_facts().moves_lanes_apart and _has_factor(step, band_of)


def _positions_known(step: Step) -> bool:
    if step.name == "gather":
        numbers = step.eqn.params["dimension_numbers"]
        if _moving_positions(step) > 1 or numbers.operand_batching_dims:
            return False  # positions in several dimensions that go together, and one in each row, are as good as a gather
        if reads_small_table(step):
            return False
        if len(numbers.start_index_map) > 1 and not _meets_others(step):
            return False  # slices that are copied one after the other, forward and backward
    if step.name in _POSITIONS:
        return step.inputs[_POSITIONS[step.name]].known is not None
    if step.name == "dynamic_update_slice":
        return all(s.known is not None for s in step.inputs[2:])
    return True


def reads_small_table(step: Step) -> bool:
    """Whether all pairs read one table, such as a bias for each distance, whose rows are read so often that padded slices for each of them take longer than a scatter.

    XLA's loop over a small table stays in the cache, where the platform says so.
    """
    positions, axes = step.inputs[1].known, step.eqn.params["dimension_numbers"].start_index_map
    if positions is None or len(axes) != 1 or not planned_facts().keeps_tables:
        return False
    moving = sum(
        1 for d, n in enumerate(positions.shape[:-1]) if n > 1 and np.any(np.diff(positions, axis=d))
    )
    most = _MOST_ADDED if _is_added(step.outputs[0]) else _MOST_READS
    return moving > 1 and np.size(positions) > most * step.inputs[0].shape[axes[0]]


def _is_added(slot: Slot) -> bool:
    """Whether all that reads an array adds it to another one, once it is turned."""
    while len(slot.readers) == 1 and slot.readers[0].name in MOVES:
        (slot,) = slot.readers[0].outputs
    return all(reader.name in ("add", "sub") for reader in slot.readers)


def _moving_positions(step: Step) -> int:
    """In how many dimensions a gather reads at positions that differ; those of a roll under ``jax.vmap`` are 0 in all others."""
    positions = step.inputs[1].known
    listed = len(step.eqn.params["dimension_numbers"].start_index_map)
    if positions is None or listed < 2 or not np.size(positions):
        return listed
    rows = np.reshape(positions, (-1, listed))
    return int(np.count_nonzero(np.any(rows != rows[0], axis=0)))


def _meets_others(step: Step) -> bool:
    """Whether what ``step`` makes is combined with another array, or added up to more than one number: XLA then computes the position of each
    element that it gathers, and adds what flows back one by one.
    """
    while len(step.outputs[0].readers) == 1 and step.outputs[0].shape != ():
        (step,) = step.outputs[0].readers
        to_several = step.name.startswith("reduce_") and step.outputs[0].shape != ()
        if to_several or sum(s.known is None for s in step.inputs) > 1:
            return True
    return len(step.outputs[0].readers) > 1 and step.outputs[0].shape != ()


def _of_windows(slot: Slot) -> bool:
    """Whether reductions over windows are repeated, which are raised: what is repeated goes with them."""
    step = before_broadcast(slot).origin
    if step is not None and step.name in ("mul", "div"):
        step = step.inputs[0].origin
    return step is not None and step.name.startswith("reduce_window")


def _is_small(slot: Slot) -> bool:
    """Whether an array is a few numbers, so that a product with it is a few sums."""
    # Numbers of a matrix, products with which are written out.
    return slot.known is not None and elements(slot) <= MOST_PARTS


def _is_repeat(step: Step) -> bool:
    return step.name == "reshape" and _is_broadcast(step.inputs[0])


def _is_broadcast(slot: Slot) -> bool:
    step = slot.origin
    return (
        step is not None and step.name == "broadcast_in_dim" and elements(slot) > elements(step.inputs[0]) > 1
    )


def _is_framed(slot: Slot) -> bool:
    """Whether an array holds overlapping parts of another one, so that a product with it is a banded product."""
    # Few steps stand between such a product and the gather that makes its parts.
    for _ in range(LEVELS):
        step = slot.origin
        if step is None or not step.inputs:
            return False
        if step.name == "gather":
            # Parts in which an element stands, on average, from which on a product with them is one with a band.
            return _positions_known(step) and elements(slot) > MOST_LARGER * elements(step.inputs[0])
        if step.name not in MOVES:
            return False
        slot = step.inputs[0]
    return False


MOVES = ("transpose", "reshape", "broadcast_in_dim", "squeeze", "expand_dims", "convert_element_type")

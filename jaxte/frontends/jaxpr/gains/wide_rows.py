"""Sums of rows that are wider than the library that XLA on the CPU reduces by does well: ensembles, batches of fields, and what flows back to learned positions.

What is emitted for them is up to eighty times as fast (``lower/rules/by_columns.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.sums import elements, is_differentiated
from jaxte.lang.dtypes import is_float
from jaxte.lower.cost.paces import SIZES


def gain_of_wide_rows(steps: Sequence[Step]) -> str:
    """What one equation of ``steps`` gains where something in it, or in its transpose, is a sum of rows that are wider than XLA's library does well; empty where nothing does.

    Such a sum is made of what is the same for all of them, too, as learned positions are: what flows back to it is one.
    """
    if not planned_facts().copies_reduced_slices or not any(map(_sums_wide_rows, steps)):
        return ""
    return "a sum of wide rows, which are added one by one, or as a product"


def _sums_wide_rows(step: Step) -> bool:
    """Whether ``step`` adds rows that are too wide, or repeats one."""
    if len(step.outputs) != 1 or not is_differentiated(step):
        return False
    (out,) = step.outputs
    if step.name == "reduce_sum":
        (whole,) = step.inputs
        leading = tuple(sorted(step.eqn.params["axes"])) == tuple(range(len(whole.shape) - len(out.shape)))
        return leading and _is_wide(out, whole)
    rule = RULES.get(step.name)
    if rule is None or rule.reads not in (Reads.POINTWISE, Reads.LINEAR):
        return False
    moving = [s for s in step.inputs if s.known is None and is_float(s.dtype)]
    return any(_is_wide(s, out) and _is_repeated_in_front(s, step) for s in moving)


def _is_wide(row: Slot, whole: Slot) -> bool:
    """Whether an array is a row of ``whole``, and wide."""
    return row.dtype in ("float32", "float64") and SIZES.wide < elements(row) < elements(whole)


def _is_repeated_in_front(slot: Slot, step: Step) -> bool:
    """Whether what ``step`` makes has dimensions in front of those of an operand, along which this is the same."""
    out = step.outputs[0].shape
    if step.name == "broadcast_in_dim":
        into = step.eqn.params["broadcast_dimensions"]
        return slot.shape == out[len(out) - len(slot.shape) :] and tuple(into) == tuple(
            range(len(out) - len(into), len(out))
        )
    fixed = next((d for d, extent in enumerate(slot.shape) if extent != 1), len(out))
    return len(slot.shape) == len(out) and slot.shape[fixed:] == out[fixed:]

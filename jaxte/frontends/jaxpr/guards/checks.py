"""Choices that check whether numbers are finite, and make the result infinite where they are not, as libraries of densities have around each of them.

``sum(where(isfinite(x), density(x), -inf))`` is infinite where an element of ``x`` is not finite, whatever its derivative. Such a choice leaves nothing
out that a derivative is asked for, nor does another one by a check of the same array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.uses import MASKS_MOVE, Use
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.limits import LEVELS

# of an element that is infinite or NaN they make one that is
_PASSES = frozenset([*MASKS_MOVE, "add", "add_any", "sub", "neg", "mul", "reduce_sum", "copy"])
# of conditions that all hold, and of those of which none does
_TOGETHER = {True: ("and", "reduce_and"), False: ("or", "reduce_or")}
_OPPOSITE = {"ne": "eq", "eq": "ne"}
_ENDS = {"ne": (-np.inf, np.inf), "lt": (np.inf,), "gt": (-np.inf,)}


class Checks:
    """Which choices among the steps of a function check numbers, and what is checked.

    Args:
        results: what the function returns; of several nothing is known, since one of them may be read by itself.
    """

    def __init__(self, results: Sequence[Slot]) -> None:
        one = len(results) == 1 and prod(results[0].shape) == 1
        self._result = results[0] if one else None
        self._spoils: set[Slot] = set()
        self._checked: set[Slot] = set()

    def enter(self, slot: Slot, uses: Iterable[Use]) -> None:
        """Finds out whether the result is infinite or NaN where an element of ``slot`` is; all that is made of it has been entered."""
        if slot is self._result or any(self._passes(use) for use in uses):
            self._spoils.add(slot)

    def is_check(self, step: Step) -> bool:
        """Whether a choice takes other numbers only where the result is infinite or NaN anyway."""
        return self._taken_by(step) is not None

    def _taken_by(self, step: Step) -> int | None:
        """The operand that a choice by a check takes of numbers that are finite; None of another choice."""
        if step.name != "select_n" or len(step.inputs) != 3:
            return None
        for holds in (True, False):
            arrays = _checked_by(step.inputs[0], holds)
            # what is put in place of numbers that are not finite
            if step.outputs[0] in self._spoils and _is_infinite(step.inputs[1 if holds else 2]):
                self._checked |= arrays
            if arrays and arrays <= self._checked:
                return 2 if holds else 1
        return None

    def _passes(self, use: Use) -> bool:
        step = use.step
        if len(step.outputs) != 1 or step.outputs[0] not in self._spoils:
            return False
        divided = step.name == "div" and use.operand == 0
        return step.name in _PASSES or divided or use.operand == self._taken_by(step)


def _is_infinite(slot: Slot) -> bool:
    """Whether all numbers of an array are known to be infinite or NaN."""
    while slot.known is None and slot.origin is not None and slot.origin.name in MASKS_MOVE:
        slot = slot.origin.inputs[0]
    return slot.known is not None and is_inexact(slot.dtype) and not np.isfinite(slot.known).any()


def _checked_by(by: Slot, holds: bool) -> set[Slot]:
    """The arrays of whose elements one is infinite or NaN where the condition ``by`` is not as it ``holds``; none where it asks for anything else."""
    found, stack = set[Slot](), [(by, holds)]
    # Conditions that hold together, and comparisons of each number.
    for _ in range(LEVELS * LEVELS):
        if not stack:
            return found
        slot, asked = stack.pop()
        step = slot.origin
        if step is None:
            return set()
        if step.name == "not":
            stack.append((step.inputs[0], not asked))
        elif step.name in (*_TOGETHER[asked], *MASKS_MOVE, "copy"):
            stack += [(own, asked) for own in step.inputs]
        elif (checked := _compared(step, asked)) is not None:
            found.add(_in_any_shape(checked))
        else:
            return set()
    return set()


def _compared(step: Step, holds: bool) -> Slot | None:
    """What is infinite or NaN where a comparison is not as it ``holds``."""
    name = step.name if holds else _OPPOSITE.get(step.name)
    match name:
        case "is_finite":
            return step.inputs[0]
        case "eq" if step.inputs[0] is step.inputs[1]:  # which NaN is not equal to
            return step.inputs[0]
        case "ne" | "lt" | "gt":
            own, other = step.inputs
            known = other.known is not None and np.ndim(other.known) == 0 and is_inexact(other.dtype)
            return own if known and np.asarray(other.known).item() in _ENDS[name] else None
    return None


def _in_any_shape(slot: Slot) -> Slot:
    while slot.origin is not None and slot.origin.name in (*MASKS_MOVE, "copy", "abs", "neg"):
        slot = slot.origin.inputs[0]
    return slot

"""Which elements of an array are needed: those that some choice between it and the results takes.

``where(x > 0, log(x), 0)`` needs the logarithm where ``x > 0``. The reverse pass multiplies a head that is 0 at the other
elements by a slope that is infinite there, which is NaN.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax.numpy as jnp

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.checks import Checks
from jaxte.frontends.jaxpr.guards.hot import takes_of_each_row
from jaxte.frontends.jaxpr.guards.uses import (
    ONE_BY_ONE,
    WHOLE,
    Conditions,
    Need,
    Says,
    Use,
    chooses,
    chosen,
    in_order,
    keeps_values,
    leaves_out,
    made_of,
    moved,
    of_repeated,
    passes,
    read_beside,
    slices_leave_out,
    takes,
)
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import ordered


@dataclass(frozen=True)
class Case:
    """A choice by ``by`` takes its operand number ``taken``, not counting ``by``."""

    by: Slot
    taken: int


class Needs:
    """What is needed of the arrays between ``steps``.

    Args:
        results: arrays that are needed in whole.
        partly: arrays of which a part is needed, by a mask that is there.
        inputs: arrays from outside that are asked about.
        whole: whether the results are all that a derivative is taken of.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        results: Sequence[Slot],
        partly: Sequence[Slot] = (),
        inputs: Sequence[Slot] = (),
        whole: bool = False,
    ) -> None:
        self._results = set(results)
        self._checks = Checks(results if whole else ())
        self._conditions = Conditions()
        self._choices: dict[Hashable, Slot] = {}
        self._need = {slot: self._only(slot) for slot in partly}
        self._multiplied: set[Slot] = set()
        self._whole: set[Slot] = set()
        # what slices read, or an extremum compares, which ask nothing of what it is made of
        self._alone: set[Slot] = set()
        self._differentiated: set[Slot] = {*results, *partly}
        for slot in (*(out for step in reversed(steps) for out in step.outputs), *inputs):
            if slot not in self._need:
                self._enter(slot)

    def partial(self, slot: Slot) -> bool:
        """Whether some elements may be needed by nothing that is differentiated."""
        return slot in self._need

    def is_differentiated(self, step: Step) -> bool:
        """Whether a derivative flows through ``step``, and not into comparisons alone."""
        return any(out in self._differentiated and is_inexact(out.dtype) for out in step.outputs)

    def is_multiplied(self, slot: Slot) -> bool:
        """Whether elements are left out by zeros that they are multiplied by, or by an extremum: their values are still read."""
        return slot in self._multiplied

    def is_read_in_whole(self, slot: Slot) -> bool:
        """Whether the values of all elements are read, those that are left out included."""
        return slot in self._whole

    def says(self, slot: Slot) -> Says:
        """The arrays outside of what is differentiated that say which elements of ``slot`` are needed."""
        return self._said(self._need[slot])

    def left_by_choices(self, slot: Slot) -> Says:
        """The same where choices alone leave elements out; nothing where something else does."""
        alone = all(isinstance(own, Case) for own in self._listed(self._need[slot]))
        return self.says(slot) if alone else {}

    def mask(
        self, slot: Slot, read: Callable[[Slot], Any], known: dict[Any, Any], values: bool = False
    ) -> Any:
        """A boolean array: whether each element is needed.

        Args:
            read: the values of :meth:`says`.
            known: masks that were made before, and where new ones go.
            values: whether the value of each element is read, needed or not.
        """
        for own in ordered([slot], lambda own: () if own in known else self._made_of(self._need[own])):
            if own not in known:
                found = self._where(self._need[own], read, known, values)
                # conditions of a result in which the elements are repeated are those of any of their places
                known[own] = found if found.shape == own.shape else _of_shape(found, own.shape)
        return known[slot]

    def _enter(self, slot: Slot) -> None:
        uses = self.uses(slot)
        self._checks.enter(slot, uses)
        if uses:
            self._differentiated.add(slot)
        if slot in self._results or not uses:
            return
        parts = slices_leave_out(slot, uses) and not any(self.partial(use.step.outputs[0]) for use in uses)
        need = self._conditions.either(map(self._only if parts else self._asked, uses))
        if need == WHOLE:
            return
        self._need[slot] = need
        if parts or not all(leaves_out(use) or self._is_passed(use) for use in uses):
            self._alone.add(slot)
        if any(keeps_values(use) or use.step.outputs[0] in self._multiplied for use in uses):
            self._multiplied.add(slot)
        if any(self._reads_in_whole(use) for use in uses):
            self._whole.add(slot)

    def _asked(self, use: Use) -> Need:
        """Where a reader needs the elements of its operand."""
        out = use.step.outputs[0]
        if not chooses(use):
            if not self._is_passed(use):
                return WHOLE
            one_by_one = use.step.name in ONE_BY_ONE and use.step.inputs[use.operand].shape == out.shape
            return self._need[out] if one_by_one else self._only(use)
        own = self._conditions.number(use)
        if self._checks.is_check(use.step):
            return self._need.get(out, WHOLE)
        if use.step.name == "mul" and out not in self._need and takes_of_each_row(use):
            return WHOLE
        if use.step.name == "select_n":
            by = self._choice(use.step.inputs[0])
            cases = [Case(by, n) for n in range(len(use.step.inputs) - 1)]
            own = self._conditions.case(cases, use.operand - 1)
        return self._conditions.both(self._need.get(out, WHOLE), own)

    def _only(self, condition: Slot | Use) -> Need:
        return frozenset([frozenset([self._conditions.number(condition)])])

    def _choice(self, by: Slot) -> Slot:
        """What choices are made by: the first array that is made of the same."""
        return self._choices.setdefault(made_of(by), by)

    def _reads_in_whole(self, use: Use) -> bool:
        out = use.step.outputs[0]
        if chooses(use) and not keeps_values(use):
            return False
        return out in self._whole if self.partial(out) else keeps_values(use)

    def _is_passed(self, use: Use) -> bool:
        """Whether what is asked of the reader's result is asked of the operand."""
        out = use.step.outputs[0]
        return passes(use) and self.partial(out) and out not in self._alone

    def uses(self, slot: Slot) -> list[Use]:
        """Who reads ``slot`` and has a derivative."""
        return [
            Use(step, n)
            for step in dict.fromkeys(slot.readers)
            if self.is_differentiated(step)
            for n, operand in enumerate(step.inputs)
            if operand is slot
        ]

    def _listed(self, need: Need) -> Iterator[Case | Use | Slot]:
        """What ``need`` asks, in order."""
        stack = [need]
        while stack:
            for number in dict.fromkeys(n for own in in_order(stack.pop()) for n in sorted(own)):
                own = self._conditions.all[number]
                if isinstance(own, frozenset):
                    stack.append(own)
                else:
                    yield own  # type: ignore[misc]

    def _said(self, need: Need) -> Says:
        found: dict[Slot, int | None] = {}
        for own in self._listed(need):
            if isinstance(own, Case):
                found[own.by] = own.taken if found.get(own.by, own.taken) == own.taken else None
            elif isinstance(own, Use):
                out = own.step.outputs[0]
                below = self.says(out) if not chooses(own) and self.partial(out) else ()
                found |= dict.fromkeys((*read_beside(own), *below))
        return found

    def _made_of(self, need: Need) -> list[Slot]:
        """The arrays of whose masks that of ``need`` is made."""
        own = (own for own in self._listed(need) if isinstance(own, Use) and not chooses(own))
        return [use.step.outputs[0] for use in own if self.partial(use.step.outputs[0])]

    def _where(self, need: Need, read: Callable[[Slot], Any], known: dict[Any, Any], values: bool) -> Any:
        """Where ``need`` holds, by masks that are ``known``."""
        if need not in known:
            every = [[self._holds(n, read, known, values) for n in sorted(own)] for own in in_order(need)]
            known[need] = reduce(operator.or_, (reduce(operator.and_, own) for own in every))
        return known[need]

    def _holds(self, number: int, read: Callable[[Slot], Any], known: dict[Any, Any], values: bool) -> Any:
        """Where one condition holds."""
        match self._conditions.all[number]:
            case Case(by, taken):
                return takes(read(by), taken)
            case Use() as use if not chooses(use):
                return moved(use, known.get(use.step.outputs[0]), read)
            case Use() as use:
                return jnp.ones((), bool) if values else chosen(use, read)
            case Slot() as slot:
                return known[slot]
            case frozenset() as need:
                return self._where(need, read, known, values)
        raise AssertionError(number)


def _of_shape(mask: Any, shape: tuple[int, ...]) -> Any:
    """``mask`` as an array of ``shape``, of which an element may be needed at several places."""
    return jnp.broadcast_to(of_repeated(mask, shape) if mask.ndim else mask, shape)

"""Arrays over all pairs of which a known mask takes a band, in blocks: sliding and chunked attention, where products, softmaxes and their gradients are computed
beside the diagonal only.

The rows are divided into blocks, of each of which the mask takes columns of a few neighbouring chunks. Outside of these an array has one number,
its ``off``, from the mask on: -inf before a softmax, 0 behind it. So a sum, a maximum or a product along the columns is that of a block with its chunks.
Where it is another number, one of each row, its part of the sum is that number times the columns, or what they sum to (``ends.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import jax
import numpy as np

from jaxte.frontends.jaxpr.equations.stands import Instead
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, slot_of
from jaxte.frontends.jaxpr.narrow.divided import Divided
from jaxte.frontends.jaxpr.narrow.ends import (
    BY_ROW,
    Form,
    end_of,
    is_harmless,
    off_of,
    reads_by_row,
    repeated_by,
)
from jaxte.frontends.jaxpr.narrow.pairs import (
    NOTHING_GIVEN,
    Blocks,
    Given,
    Known,
    Roles,
    candidates,
    given_to,
    labels_of,
    pair_of,
    roles_of,
)
from jaxte.frontends.jaxpr.narrow.rows import work
from jaxte.lang.limits import HALVED, WORTH_MULTIPLYING
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.platforms import CPU

_LEAST_SAVED = 0.05  # of all operations


def banded(
    closed: Any,
    steps: Sequence[Step],
    slots: Mapping[Any, Slot],
    given: Given = NOTHING_GIVEN,
    facts: Platform = CPU,
) -> Instead | None:
    """``closed``, whose equations are ``steps``, with what a known band takes of all pairs only; None where there is no such band.

    Some arguments may be ``given``. Where the platform keeps all pairs on its chip, they stay as they are.
    """
    jaxpr = closed.jaxpr
    known = Known(steps, given_to(closed, slots, given))
    results = [slot_of(v, slots) for v in jaxpr.outvars]
    # wide blocks hold narrow bands too, which gain more in blocks of their own
    for blocks, turned in sorted(candidates(steps, known), key=lambda own: own[0].width):
        found = _Banded(steps, results, known, blocks, turned)
        if found.pays(facts):
            break
    else:
        return None

    def run(*args: Any) -> list[Any]:
        given = [slots[v] for v in (*jaxpr.constvars, *jaxpr.invars)]
        return found.computed(dict(zip(given, (*closed.consts, *args), strict=True)))

    return Instead(jax.make_jaxpr(run)(*closed.in_avals), tuple(found.told()))


class _Refused(Exception):
    """A step that cannot be computed in blocks."""


class _Banded(Divided):
    """Which arrays are computed in blocks, and which in whole."""

    def __init__(
        self, steps: Sequence[Step], results: Sequence[Slot], known: Known, blocks: Blocks, turned: bool
    ) -> None:
        super().__init__(steps, results, known, blocks, turned)
        for step in steps:
            self._enter(step)
        try:
            self._ask()
            self._is_refused = False
        except _Refused:
            self._is_refused = True

    def _enter(self, step: Step) -> None:
        """What the result of ``step`` is outside of the band."""
        if len(step.outputs) != 1:
            return
        (out,) = step.outputs
        for slot in step.inputs:
            if slot.known is not None and prod(slot.shape) == 1:
                self.constant[slot] = np.asarray(slot.known).reshape(()).item()
        if step.name == "broadcast_in_dim" and step.inputs[0] in self.constant:
            self.constant[out] = self.constant[step.inputs[0]]
        if self.known.has(out):
            return
        for slot in filter(self.known.has, step.inputs):
            self._look_at(slot)
        formed = [n for n, slot in enumerate(step.inputs) if slot in self.forms]
        labels = labels_of(step) if formed and step.name != "gather" else None
        if labels is None:
            return
        forms = [(labels[n], self.forms[step.inputs[n]]) for n in formed]
        (row, column), *others = {(own[form.rows], own[form.columns]) for own, form in forms}
        if others or not isinstance(row, int) or not isinstance(column, int):
            return
        off = off_of(step, self.offs(step), self._takes_in_each_row(step))
        if off is None and reads_by_row(step, labels, column, self.offs(step)):
            off = BY_ROW
        if off is not None:
            self.forms[out] = Form(row, column, off)

    def _look_at(self, slot: Slot) -> None:
        """The form of a known array."""
        pair = None if slot in self.forms or slot in self.constant else pair_of(slot)
        value = None if pair is None else self.as_pairs(slot)
        if pair is None or value is None:
            return
        around = self.blocks.around(value)
        if around.size and (around == around.flat[0]).all():
            row, column = reversed(pair) if self.turned else pair
            self.forms[slot] = Form(row, column, around.flat[0].item())

    def _takes_in_each_row(self, step: Step) -> bool:
        """Whether a choice by a known mask takes something in each row, whatever the arguments are."""
        by = step.inputs[0]
        is_known = step.name == "select_n" and by in self.forms and self.known.has(by)
        mask = self.as_pairs(by) if is_known else None
        return mask is not None and bool((mask != self.forms[by].off).any(1).all())

    def _ask(self) -> None:
        """What is computed in blocks: what leads to sums that leave out what is not in the band."""
        for step in reversed(self.steps):
            out = step.outputs[0] if len(step.outputs) == 1 else None
            if out in self.in_blocks and not self.is_given(out):  # type: ignore[arg-type]
                roles = self._roles_in_blocks(step, *self.in_blocks[out])  # type: ignore[index]
                if roles is None:
                    self._cut_whole(out)  # type: ignore[arg-type]
                else:
                    self._want(step, roles)
                    self._want_repeated(step)
            if step.eqn.effects or not self.whole.isdisjoint(step.outputs):
                end = end_of(step, labels_of(step), self._moved_forms(step))
                if end is None:
                    self.whole.update(step.inputs)
                else:
                    self.ends[step] = end
                    self._want(step, end.roles)

    def _moved_forms(self, step: Step) -> list[Form | None]:
        """Those of the operands that arguments move."""
        return [None if self.known.has(slot) else self.forms.get(slot) for slot in step.inputs]

    def _roles_in_blocks(self, step: Step, row: int, column: int) -> Roles | None:
        """The roles of the operands of a step that is computed in blocks; None for one that is not."""
        labels = labels_of(step)
        if labels is None or not (step.outputs[0] in self.forms or is_harmless(step)):
            return None
        if step.name == "gather" and not {row, column} <= set(labels[1]):
            return None
        return roles_of(labels, row, column)

    def _want(self, step: Step, roles: Roles) -> None:
        for slot, (row, column) in zip(step.inputs, roles, strict=True):
            if row is None or column is None:
                self.whole.add(slot)
            elif self.in_blocks.setdefault(slot, (row, column)) != (row, column):
                raise _Refused
            elif not self.is_given(slot) and (slot.origin is None or len(slot.origin.outputs) > 1):
                self._cut_whole(slot)

    def _want_repeated(self, step: Step) -> None:
        """What is repeated along the columns that the result of ``step`` outside of the band is made of."""
        if self.is_by_row(step.outputs[0]):
            repeated = (
                repeated_by(slot, d) for slot in step.inputs for d in self.in_blocks.get(slot, ())[1:]
            )
            self.whole.update(made.inputs[0] for made in repeated if made is not None)

    def _cut_whole(self, slot: Slot) -> None:
        """Blocks of ``slot`` are read where it is computed in whole: random numbers, tables of all pairs."""
        if slot in self.forms:
            raise _Refused
        self.cut.add(slot)
        self.whole.add(slot)

    def pays(self, facts: Platform) -> bool:
        """Whether much of the work is left out."""
        if self._is_refused or (facts.keeps_on_chip and self._largest() <= facts.rates.cache):
            return False
        before = after = 0.0
        for step in self.steps:
            if len(step.outputs) != 1 or self.known.has(step.outputs[0]):
                continue
            (out,) = step.outputs
            own = work(step, [s.shape for s in step.inputs], out.shape)
            before += own
            if out in self.in_blocks or step in self.ends:
                after += own * self.blocks.width / self.blocks.columns
            if out in self.whole and step not in self.ends:
                after += own
        # Where arrays of all pairs are cut into blocks, more has to be saved.
        least = 1 / HALVED if self.cut else _LEAST_SAVED
        return before - after >= max(least * before, WORTH_MULTIPLYING)

    def _largest(self) -> int:
        """Bytes of the largest array of all pairs that is computed in blocks."""
        return max((prod(s.shape) * s.aval.dtype.itemsize for s in self.in_blocks), default=0)

    def told(self) -> Iterator[tuple[Any, str]]:
        """The equations of which a part is computed, and what part."""
        own = self.blocks
        text = f"{own.width} of {own.columns} columns for each {own.height} rows: a mask takes no others"
        for step in self.steps:
            (out, *_) = step.outputs or (None,)
            is_product = step in self.ends and step.name == "dot_general"
            if is_product or (out in self.in_blocks and not self.known.has(out)):  # type: ignore[arg-type]
                yield step.eqn, text

"""Arrays over all pairs of which a known mask takes a band, in blocks: sliding and chunked attention, where products, softmaxes and their gradients are computed
beside the diagonal only.

The rows are divided into blocks, of each of which the mask takes columns of a few neighbouring chunks. Outside of these an array has one number,
its ``off``, from the mask on: -inf before a softmax, 0 behind it. So a sum, a maximum or a product along the columns is that of a block with its chunks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.equations.stands import Instead, as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, slot_of
from jaxte.frontends.jaxpr.narrow.blocks import Blocks
from jaxte.frontends.jaxpr.narrow.off import NEUTRAL, is_harmless, off_of
from jaxte.frontends.jaxpr.narrow.pairs import (
    NO_MASKS,
    Known,
    Masks,
    Roles,
    candidates,
    given_to,
    labels_of,
    pair_of,
    roles_of,
)
from jaxte.frontends.jaxpr.narrow.rows import bound, work
from jaxte.lower.cost.platforms import CPU, Platform

_LEAST_SAVED = 0.05  # of all operations
_WORTH = 1 << 20  # operations
_SHAPES = {"broadcast_in_dim": "shape", "reshape": "new_sizes"}


@dataclass(frozen=True)
class Form:
    """An array over all pairs: its dimensions of rows and of columns, and the number that it has outside of the band."""

    rows: int
    columns: int
    off: Any


def banded(
    closed: Any,
    steps: Sequence[Step],
    slots: Mapping[Any, Slot],
    masks: Masks = NO_MASKS,
    facts: Platform = CPU,
) -> Instead | None:
    """``closed``, whose equations are ``steps``, with what a known band takes of all pairs only; None where there is no such band.

    Some arguments may be known to be ``masks``. Where the platform keeps all pairs on its chip, they stay as they are.
    """
    jaxpr = closed.jaxpr
    known = Known(steps, given_to(closed, slots, masks))
    results = [slot_of(v, slots) for v in jaxpr.outvars]
    for blocks, turned in candidates(steps, known):
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


class _Banded:
    """Which arrays are computed in blocks, and which in whole."""

    def __init__(
        self, steps: Sequence[Step], results: Sequence[Slot], known: Known, blocks: Blocks, turned: bool
    ) -> None:
        self._steps, self._results = steps, results
        self._known, self._blocks, self._turned = known, blocks, turned
        self._forms: dict[Slot, Form] = {}
        self._constant: dict[Slot, Any] = {}
        self._in_blocks: dict[Slot, tuple[int, int]] = {}
        self._whole: set[Slot] = set(results)
        self._ends: dict[Step, tuple[Roles, Hashable]] = {}
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
                self._constant[slot] = np.asarray(slot.known).reshape(()).item()
        if step.name == "broadcast_in_dim" and step.inputs[0] in self._constant:
            self._constant[out] = self._constant[step.inputs[0]]
        if self._known.has(out):
            return
        for slot in filter(self._known.has, step.inputs):
            self._look_at(slot)
        formed = [n for n, slot in enumerate(step.inputs) if slot in self._forms]
        labels = labels_of(step) if formed else None
        if labels is None:
            return
        forms = [(labels[n], self._forms[step.inputs[n]]) for n in formed]
        (row, column), *others = {(own[form.rows], own[form.columns]) for own, form in forms}
        if others or not isinstance(row, int) or not isinstance(column, int):
            return
        off = off_of(step, [self._off(slot) for slot in step.inputs], self._takes_in_each_row(step))
        if off is not None:
            self._forms[out] = Form(row, column, off)

    def _off(self, slot: Slot) -> Any:
        return self._forms[slot].off if slot in self._forms else self._constant.get(slot)

    def _look_at(self, slot: Slot) -> None:
        """The form of a known array."""
        pair = None if slot in self._forms or slot in self._constant else pair_of(slot)
        value = None if pair is None else self._as_pairs(slot)
        if pair is None or value is None:
            return
        around = self._blocks.around(value)
        if around.size and (around == around.flat[0]).all():
            row, column = reversed(pair) if self._turned else pair
            self._forms[slot] = Form(row, column, around.flat[0].item())

    def _as_pairs(self, slot: Slot) -> np.ndarray | None:
        """A known array with its rows first, where it has as many as the band."""
        value = self._known.pairs(slot)
        if value is None:
            return None
        value = value.swapaxes(0, 1) if self._turned else value
        return value if value.shape[:2] == (self._blocks.rows, self._blocks.columns) else None

    def _takes_in_each_row(self, step: Step) -> bool:
        """Whether a choice by a known mask takes something in each row, whatever the arguments are."""
        by = step.inputs[0]
        is_known = step.name == "select_n" and by in self._forms and self._known.has(by)
        mask = self._as_pairs(by) if is_known else None
        return mask is not None and bool((mask != self._forms[by].off).any(1).all())

    def _ask(self) -> None:
        """What is computed in blocks: what leads to sums that leave out what is not in the band."""
        for step in reversed(self._steps):
            out = step.outputs[0] if len(step.outputs) == 1 else None
            if out in self._in_blocks and not self._is_given(out):  # type: ignore[arg-type]
                self._want(step, self._roles_in_blocks(step, *self._in_blocks[out]))  # type: ignore[index]
            if step.eqn.effects or not self._whole.isdisjoint(step.outputs):
                end = self._end(step)
                if end is None:
                    self._whole.update(step.inputs)
                else:
                    self._ends[step] = end
                    self._want(step, end[0])

    def _roles_in_blocks(self, step: Step, row: int, column: int) -> Roles:
        labels = labels_of(step)
        if labels is None or not (step.outputs[0] in self._forms or is_harmless(step)):
            raise _Refused
        return roles_of(labels, row, column)

    def _want(self, step: Step, roles: Roles) -> None:
        for slot, (row, column) in zip(step.inputs, roles, strict=True):
            if row is None or column is None:
                self._whole.add(slot)
            elif self._in_blocks.setdefault(slot, (row, column)) != (row, column):
                raise _Refused
            elif slot.origin is None and not self._is_given(slot):
                raise _Refused  # an array of all pairs that is there

    def _is_given(self, slot: Slot) -> bool:
        """Whether an array of pairs is known, and cut when the function is traced."""
        is_known = self._known.has(slot) and slot not in self._constant
        return is_known and self._as_pairs(slot) is not None

    def _end(self, step: Step) -> tuple[Roles, Hashable] | None:
        """The roles of the operands of a sum along the columns, and which dimension of its result the rows are."""
        labels = labels_of(step)
        if labels is None or step.name not in NEUTRAL:
            return None
        for own, slot in zip(labels, step.inputs, strict=True):
            form = self._forms.get(slot)
            if form is None or self._known.has(slot) or form.off != NEUTRAL[step.name]:
                continue
            row, column = own[form.rows], own[form.columns]
            if isinstance(column, tuple):
                return roles_of(labels, row, column), row
        return None

    def pays(self, facts: Platform) -> bool:
        """Whether much of the work is left out."""
        if self._is_refused or (facts.keeps_on_chip and self._largest() <= facts.rates.cache):
            return False
        before = after = 0.0
        for step in self._steps:
            if len(step.outputs) != 1 or self._known.has(step.outputs[0]):
                continue
            (out,) = step.outputs
            own = work(step, [s.shape for s in step.inputs], out.shape)
            before += own
            if out in self._in_blocks or step in self._ends:
                after += own * self._blocks.width / self._blocks.columns
            if out in self._whole and step not in self._ends:
                after += own
        return before - after >= max(_LEAST_SAVED * before, _WORTH)

    def _largest(self) -> int:
        """Bytes of the largest array of all pairs that is computed in blocks."""
        return max((prod(s.shape) * s.aval.dtype.itemsize for s in self._in_blocks), default=0)

    def told(self) -> Iterator[tuple[Any, str]]:
        """The equations of which a part is computed, and what part."""
        own = self._blocks
        text = f"{own.width} of {own.columns} columns for each {own.height} rows: a mask takes no others"
        for step in self._steps:
            (out, *_) = step.outputs or (None,)
            is_product = step in self._ends and step.name == "dot_general"
            if is_product or (out in self._in_blocks and not self._known.has(out)):  # type: ignore[arg-type]
                yield step.eqn, text

    def _cut(self, slot: Slot, row: int, column: int) -> Any:
        """A known array of pairs in blocks."""
        off = self._forms[slot].off if slot in self._forms else 0
        value = self._as_pairs(slot)
        assert value is not None, slot.shape
        value = np.moveaxis(value, (0, 1), (row, column))
        found = self._blocks.of_pairs(value, row, column, off)
        return jnp.broadcast_to(found, (len(found), *self._shape(slot, row, column)))

    def _shape(self, slot: Slot, row: int, column: int) -> tuple[int, ...]:
        """That of one block."""
        extents = {row: self._blocks.height, column: self._blocks.width}
        return tuple(extents.get(d, e) for d, e in enumerate(slot.shape))

    def computed(self, env: dict[Slot, Any]) -> list[Any]:
        """The results of the function."""
        whole, parts = env, dict[Slot, Any]()

        def read(slot: Slot) -> Any:
            return whole.get(slot, slot.known)

        def operand(step: Step, slot: Slot, row: int | None, column: int | None) -> Any:
            if row is not None and column is not None:
                return self._cut(slot, row, column) if self._is_given(slot) else parts[slot]
            if row is None and column is None:
                return read(slot)
            d, cut = (column, self._blocks.of_columns) if row is None else (row, self._blocks.of_rows)
            return in_place_of(step.eqn, lambda x: cut(x, d), read(slot))  # type: ignore[arg-type]

        def in_blocks(step: Step, roles: Roles, changed: Mapping[str, Any]) -> Any:
            moved = [0 if own != (None, None) else None for own in roles]
            operands = [operand(step, slot, *own) for slot, own in zip(step.inputs, roles, strict=True)]
            of_one = jax.vmap(lambda *xs: bound(step, xs, **changed), moved, axis_size=self._blocks.count)
            return of_one(*operands)

        for step in self._steps:
            if step in self._ends:
                roles, row = self._ends[step]
                made = in_blocks(step, roles, {})
                whole[step.outputs[0]] = in_place_of(
                    step.eqn, lambda x, s=step, r=row: self._joined(s, x, r), made
                )
            elif step.eqn.effects or not self._whole.isdisjoint(step.outputs):
                whole |= zip(step.outputs, as_it_stands(step.eqn, list(map(read, step.inputs))), strict=True)
            out = step.outputs[0] if len(step.outputs) == 1 else None
            if out in self._in_blocks and not self._is_given(out):  # type: ignore[arg-type]
                row, column = self._in_blocks[out]  # type: ignore[index]
                changed = {_SHAPES[step.name]: self._shape(out, row, column)} if step.name in _SHAPES else {}
                parts[out] = in_blocks(step, self._roles_in_blocks(step, row, column), changed)  # type: ignore[index]
        return [read(slot) for slot in self._results]

    def _joined(self, step: Step, of_blocks: Any, row: Hashable) -> Any:
        """The result of ``step`` from that of each block, whose rows are dimension ``row``, or which it sums too."""
        if isinstance(row, int):
            return self._blocks.as_rows(of_blocks, row)
        return {"reduce_max": jnp.max, "reduce_min": jnp.min}.get(step.name, jnp.sum)(of_blocks, 0)

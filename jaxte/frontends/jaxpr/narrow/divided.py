"""A function of which arrays over all pairs are computed in blocks: what of each array there is, and its results from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.equations.stands import as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.narrow.ends import BY_ROW, SHAPES, End, Form, one_column, outside_of
from jaxte.frontends.jaxpr.narrow.pairs import Blocks, Known, Roles, labels_of, roles_of
from jaxte.frontends.jaxpr.narrow.rows import bound


class Divided:
    """Which arrays of ``steps`` are computed in blocks, and which in whole.

    Attributes:
        forms: of arrays that have one number of each row outside of the band.
        constant: numbers that are everywhere the same.
        in_blocks: arrays that are computed in blocks, with their dimensions of rows and columns.
        whole: arrays that are computed in whole.
        cut: arrays that are computed in whole, or given, and of which the blocks are read.
        ends: what goes along the columns.
    """

    def __init__(
        self, steps: Sequence[Step], results: Sequence[Slot], known: Known, blocks: Blocks, turned: bool
    ) -> None:
        self.steps, self.results = steps, results
        self.known, self.blocks, self.turned = known, blocks, turned
        self.forms: dict[Slot, Form] = {}
        self.constant: dict[Slot, Any] = {}
        self.in_blocks: dict[Slot, tuple[int, int]] = {}
        self.whole: set[Slot] = set(results)
        self.cut: set[Slot] = set()
        self.ends: dict[Step, End] = {}

    def offs(self, step: Step) -> list[Any]:
        """What its operands are outside of the band; None of what is not one number of a row."""
        forms, constant = self.forms, self.constant
        return [forms[slot].off if slot in forms else constant.get(slot) for slot in step.inputs]

    def as_pairs(self, slot: Slot) -> np.ndarray | None:
        """A known array with its rows first, where it has as many as the band."""
        value = self.known.pairs(slot)
        if value is None:
            return None
        value = value.swapaxes(0, 1) if self.turned else value
        return value if value.shape[:2] == (self.blocks.rows, self.blocks.columns) else None

    def is_given(self, slot: Slot) -> bool:
        """Whether an array of pairs is known, and cut when the function is traced."""
        is_known = self.known.has(slot) and slot not in self.constant
        return is_known and self.as_pairs(slot) is not None

    def is_by_row(self, slot: Slot) -> bool:
        return slot in self.forms and self.forms[slot].off is BY_ROW

    def of_known(self, slot: Slot, row: int, column: int) -> Any:
        """A known array of pairs in blocks."""
        off = self.forms[slot].off if slot in self.forms else 0
        value = self.as_pairs(slot)
        assert value is not None, slot.shape
        value = np.moveaxis(value, (0, 1), (row, column))
        found = self.blocks.of_pairs(value, row, column, off)
        return jnp.broadcast_to(found, (len(found), *self.shape(slot, row, column)))

    def shape(self, slot: Slot, row: int, column: int) -> tuple[int, ...]:
        """That of one block."""
        extents = {row: self.blocks.height, column: self.blocks.width}
        return tuple(extents.get(d, e) for d, e in enumerate(slot.shape))

    def computed(self, given: Mapping[Slot, Any]) -> list[Any]:
        """The results of the function."""
        values = _Values(self, given)
        for step in self.steps:
            values.compute(step)
        return [values.read(slot) for slot in self.results]


class _Values:
    """What has been computed of each array: in whole, in blocks, and what is outside of these, one column of all rows."""

    def __init__(self, of: Divided, given: Mapping[Slot, Any]) -> None:
        self._of, self._blocks = of, of.blocks
        self._whole = dict(given)
        self._parts: dict[Slot, Any] = {}
        self._outside: dict[Slot, Any] = {}

    def read(self, slot: Slot) -> Any:
        return self._whole.get(slot, slot.known)

    def compute(self, step: Step) -> None:
        of = self._of
        if step in of.ends:
            self._whole[step.outputs[0]] = in_place_of(step.eqn, lambda: self._at_end(of.ends[step]))
        elif step.eqn.effects or not of.whole.isdisjoint(step.outputs):
            made = as_it_stands(step.eqn, list(map(self.read, step.inputs)))
            self._whole |= zip(step.outputs, made, strict=True)
        (out, *_) = step.outputs or (None,)
        if out not in of.in_blocks or out in of.cut or of.is_given(out):
            return
        row, column = of.in_blocks[out]
        labels = labels_of(step)
        assert labels is not None, step.name
        changed = {SHAPES[step.name]: of.shape(out, row, column)} if step.name in SHAPES else {}
        roles = roles_of(labels, row, column)
        self._parts[out] = self._in_blocks(step, self._operands(step, roles), roles, changed)
        if of.is_by_row(out):
            self._outside[out] = outside_of(step, labels, column, of.offs(step), self.read, self._outside)

    def _at_end(self, end: End) -> Any:
        step, operands = end.step, self._operands(end.step, end.roles)
        if end.around is None:
            return end.joined(self._in_blocks(step, operands, end.roles, {}), self._blocks)
        n, column = end.around
        slot, (row, _) = step.inputs[n], end.roles[n]
        outside = self._outside.get(slot)
        if outside is None:
            outside = jnp.full(one_column(slot.shape, column), self._of.forms[slot].off, slot.aval.dtype)
        if end.is_sum:
            operands[n] = operands[n] - self._blocks.of_rows(outside, row)  # type: ignore[arg-type]
        made = end.joined(self._in_blocks(step, operands, end.roles, {}), self._blocks)
        whole = [None if m == n else self.read(other) for m, other in enumerate(step.inputs)]
        return end.with_rest(made, outside, whole, self._blocks.columns)

    def _operands(self, step: Step, roles: Roles) -> list[Any]:
        return [self._operand(step, slot, *own) for slot, own in zip(step.inputs, roles, strict=True)]

    def _operand(self, step: Step, slot: Slot, row: int | None, column: int | None) -> Any:
        if row is not None and column is not None:
            return self._pairs(step, slot, row, column)
        if row is None and column is None:
            return self.read(slot)
        d, cut = (column, self._blocks.of_columns) if row is None else (row, self._blocks.of_rows)
        return in_place_of(step.eqn, lambda x: cut(x, d), self.read(slot))  # type: ignore[arg-type]

    def _pairs(self, step: Step, slot: Slot, row: int, column: int) -> Any:
        """An array of all pairs in blocks."""
        if self._of.is_given(slot):
            return self._of.of_known(slot, row, column)
        if slot not in self._parts:
            whole = self.read(slot)
            self._parts[slot] = in_place_of(step.eqn, lambda x: self._blocks.of_whole(x, row, column), whole)
        return self._parts[slot]

    def _in_blocks(
        self, step: Step, operands: Sequence[Any], roles: Roles, changed: Mapping[str, Any]
    ) -> Any:
        moved = [0 if own != (None, None) else None for own in roles]
        of_one = jax.vmap(lambda *xs: bound(step, xs, **changed), moved, axis_size=self._blocks.count)
        return of_one(*operands)

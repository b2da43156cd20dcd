"""What a step of a loop reads of other tensors: slices at its position, rows of one that is turned before the loop, and what the loop hands it by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxte.lang.expr import Expr, Read, as_expr, cast
from jaxte.lang.walk import substitute
from jaxte.lower.arrays.data import DynamicIndex
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import Transpose, View
from jaxte.lower.body.assignment import Assignment
from jaxte.lower.code.lines import tensor_name
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.lower.recurrences.written import (
    Beside,
    window,
    zeros,
)
from jaxte.lower.tiles.write import Writer
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known as number_of
from jaxte.tensors.recurrences.step import Slice, Step
from jaxte.tensors.tensor import Compute, Tensor


@dataclass
class Reads:
    """The reads of a step that is being written.

    Attributes:
        known: names of tensors, outside and in the step.
        beside: what the step is handed of others.
        turned: tensors with an axis first, which are made before the loop.
    """

    step: Step
    known: dict[Tensor, str]
    writer: Writer
    scope: str
    beside: Sequence[Beside] = ()
    turned: dict[tuple[Tensor, int], Statement] = field(default_factory=dict)

    def of(
        self, placeholder: Tensor, own: Slice, outside: frozenset[Tensor], lines: list[AnyStatement]
    ) -> Node:
        """What ``placeholder`` stands for; ``outside`` exists before the loop, and statements that positions need are added to ``lines``."""
        handed = self._handed_at(own)
        if handed is not None:
            return handed
        if any(number_of(as_expr(own.source.shape[axis])) == 0 for axis in own.positions):
            return zeros(placeholder.shape, placeholder.dtype)  # nothing is read of it
        node: Node = tensor_name(self.known[own.source], own.source)
        if own.source in outside and self._reads_columns(own):
            ((axis, position),) = own.positions.items()
            return DynamicIndex(self._turned(own.source, node, axis), self.position(position, lines), 0)
        for axis, position in sorted(own.positions.items(), reverse=True):
            at = self.position(position, lines)
            node = (
                window(node, axis, at, own.lengths[axis])
                if axis in own.lengths
                else DynamicIndex(node, at, axis)
            )
        return node

    def _reads_columns(self, own: Slice) -> bool:
        """Whether what a step reads lies apart, where a step takes so little time that this is most of it."""
        return (
            self.writer.shared.policy.facts.cheap_steps
            and not own.lengths
            and len(own.positions) == 1
            and 0 not in own.positions
        )

    def _turned(self, source: Tensor, node: Node, axis: int) -> Node:
        """``source`` with ``axis`` first."""
        order = (axis, *(n for n in range(len(node.shape)) if n != axis))
        if (source, axis) not in self.turned:
            name = self.writer.shared.names.new(f"{source.name}_rows")
            self.turned[source, axis] = Statement(self.scope, name, View(node, Transpose(order)))
        made = self.turned[source, axis]
        return Name(made.target, made.source.shape, made.source.kind)

    def _handed_at(self, own: Slice) -> Name | None:
        """A slice that the step is handed by itself."""
        for beside in self.beside:
            if own.source in beside.names and not own.lengths:
                ((_, position),) = own.positions.items()
                if number_of(normal(position - self.step.clock)) == beside.offset:
                    return beside.names[own.source]
        return None

    def position(self, position: Expr, lines: list[AnyStatement]) -> Node:
        """A position of a slice, an expression of the clock."""
        step = self.step
        if position is step.clock:
            return tensor_name(self.known[step.now], step.now)
        body = cast(substitute(position, {step.clock: Read(step.now, ())}), "int32")
        own = Compute(f"{step.now.name}_at", (), body)
        return self._lowered(own, lines)

    def _lowered(self, tensor: Compute, lines: list[AnyStatement]) -> Node:
        """The value of a tensor without axes; statements that it needs are added to ``lines``."""
        own = Assignment(self.scope, self.scope, tensor.name, self.known, in_tiles=True)
        shared = replace(self.writer.shared, written={})
        *before, last = self.writer.lower(own, shared, tensor).statements
        lines += before
        assert isinstance(last, Statement)
        return last.source

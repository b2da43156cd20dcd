"""What a step of a loop reads of other tensors: slices at its position, rows of one that is turned before the loop, and what the loop hands it by itself.

States that are looked back at for several steps are a ring: the last values of one are an array, each at its position modulo their number, and a value takes the place of the oldest.
A loop that hands on each of them by itself copies all in every step. So does one that reads several such arrays in the loop that computes what is written into them, which is
why what is read is kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxte.lang.expr import Axis, Expr, Read, as_expr, cast
from jaxte.lang.limits import SEVERAL
from jaxte.lang.walk import substitute
from jaxte.lower.arrays.data import DynamicIndex, DynamicUpdate
from jaxte.lower.arrays.elementwise import Full, Kept, Name, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import ALL, NEW, Index, Range, Transpose, View
from jaxte.lower.body.assignment import Assignment
from jaxte.lower.code.vocabulary import AnyStatement, Statement, tensor_name
from jaxte.lower.recurrences.written import (
    Beside,
    window,
    zeros,
)
from jaxte.lower.tiles.write import Writer
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known
from jaxte.tensors.recurrences.node import Recurrence, State
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
        if any(known(as_expr(own.source.shape[axis])) == 0 for axis in own.positions):
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
                if known(normal(position - self.step.clock)) == beside.offset:
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


RING = 0  # stands for such an array where others say how many steps ago a value is


def ring_of(step: Step, state: State) -> int:
    """How many values of ``state`` a step is handed as one array; 0 where they are few enough to be handed on one by one."""
    depth = step.depth(state)
    return depth if depth >= SEVERAL else 0


@dataclass(frozen=True)
class Ring:
    """The last ``length`` values of ``state``, in an array called ``name``."""

    group: Recurrence
    state: State
    length: int
    name: str

    @property
    def array(self) -> Name:
        place = self.group.place_of(self.state)
        rest = (*self.state.shape[:place], *self.state.shape[place + 1 :])
        return Name(self.name, tuple(map(as_expr, (self.length, *rest))), (self.state.dtype, False))

    def place(self, clock: Axis, lag: int) -> Expr:
        """Where the value of ``lag`` steps before the position ``clock`` is."""
        ago = normal(lag - as_expr(self.group.extent)) if self.group.reverse else as_expr(-lag)
        number = known(ago)
        return normal(clock + (ago if number is None else number % self.length)) % self.length

    def row(self, at: Node, by_call: bool) -> Node:
        """The value at a place; ``by_call`` where XLA drops barriers before it fuses loops."""
        return Kept(DynamicIndex(self.array, at, 0), "first" if by_call else "barrier")

    def with_row(self, value: Node, at: Node) -> Node:
        """The array with ``value`` at a place."""
        return DynamicUpdate(self.array, View(value, Index((NEW, *(ALL,) * len(value.shape)))), at, 0)

    def start(self, before: Node | None) -> Node:
        """The array before the first step; ``before`` are the values before the first position, None where nothing reads any."""
        array = self.array
        if before is None:
            return Full(array.shape, Number(False if self.state.dtype == "bool" else 0), self.state.dtype)
        place = self.group.place_of(self.state)
        length = before.shape[place]
        if known(length) != self.length:
            part = (
                Range(None, as_expr(self.length))
                if self.group.reverse
                else Range(normal(length - self.length), None)
            )
            before = View(before, Index((*(ALL,) * place, part, *(ALL,) * (len(before.shape) - place - 1))))
        order = (place, *(n for n in range(len(before.shape)) if n != place))
        return View(before, Transpose(order)) if place else before

"""States that are looked back at for several steps: the last values of one are an array, each at its position modulo their number, and a value takes the place of the oldest.

A loop that hands on each of them by itself copies all in every step. So does one that reads several such arrays in the loop that computes what is written into them, which is
why what is read is kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.lang.limits import SEVERAL
from jaxte.lower.arrays.data import DynamicIndex, DynamicUpdate
from jaxte.lower.arrays.elementwise import Full, Kept, Name, Number
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import ALL, NEW, Index, Range, Transpose, View
from jaxte.sets.affine import normal
from jaxte.sets.intervals import known
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.recurrences.step import Step

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

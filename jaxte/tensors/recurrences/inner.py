"""Recurrences that the body of another tensor runs, ``te.recurrence`` within it: over the axes of that body, too, which stand in front of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.walk import free_axes, reads_of, substitute
from jaxte.tensors.bodies.functions import evaluated
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.shapes import Shape, as_extent
from jaxte.tensors.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Inner:
    """A tensor within a body: its elements at the present point of the axes of that body.

    Attributes:
        tensor: over these axes, and its own.
        around: the axes of the body.
    """

    tensor: Tensor
    around: tuple[Axis, ...]

    def __getitem__(self, indices: Any) -> Expr:
        own = indices if isinstance(indices, tuple) else (indices,)
        found: Expr = self.tensor[(*self.around, *own)]
        return found

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    @property
    def shape(self) -> Shape:
        """Without the axes of the body."""
        return self.tensor.shape[len(self.around) :]

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Around:
    """The axes of a body, and those of the tensors within it that stand for them."""

    axes: tuple[Axis, ...]
    own: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(as_extent(a.extent) for a in self.axes)

    def state(self, state: State) -> State:
        """``state`` with these axes in front."""
        return State(state.name, (*self.shape, *state.shape), state.dtype)

    def over(self, body: Expr, states: dict[State, State], own: Sequence[Axis]) -> Expr:
        """``body`` with reads of the ``states`` at these axes, over ``own`` in place of them."""
        table: dict[Expr, Expr] = dict(zip(self.axes, own, strict=True))
        moved: dict[Expr, Expr] = {}
        for read in reads_of(body):
            if isinstance(read.tensor, State) and read.tensor in states:
                moved[read] = Read(states[read.tensor], (*self.axes, *read.indices))
        return substitute(substitute(body, moved), table)

    def init(self, init: Any) -> Any:
        """What stands before the first position, as a function of these axes and of the others."""
        if init is None or isinstance(init, (int, float, complex, bool)):
            return init
        count = len(self.axes)

        def value(*at: Expr) -> Expr:
            if isinstance(init, (Tensor, Inner)):
                found = as_expr(init[tuple(at[count:])])
            else:
                found = as_expr(evaluated(init, *at[count:]) if callable(init) else init)
            return substitute(found, dict(zip(self.axes, at[:count], strict=True)))

        return value


def around_of(exprs: Sequence[Expr], axes: Sequence[Sequence[Axis]]) -> Around | None:
    """The axes in ``exprs`` that are none of ``axes``; None where there are none."""
    own = {a for row in axes for a in row}
    found = dict.fromkeys(a for e in exprs for a in free_axes(e) if a not in own and not a.reduction)
    return Around(tuple(found), tuple(Axis(a.name, 0, a.extent) for a in found)) if found else None

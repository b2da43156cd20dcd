"""What one position of a recurrence is: the tensors that it computes, what it is handed, and what it results in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxte.lang.expr import Axis, Expr
from jaxte.lang.graphs import reached
from jaxte.tensors.recurrences.node import Recurrent, State
from jaxte.tensors.tensor import Compute, Placeholder, Tensor

Carried = tuple[State, int]
"""A state and how many steps ago it was that."""


@dataclass(frozen=True)
class Slice:
    """``source`` at ``positions``, expressions of the clock, along the dimensions that are its keys; from there on, where it has a length."""

    source: Tensor
    positions: dict[int, Expr]
    lengths: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One position.

    Attributes:
        clock: the position, as an axis.
        now: the same as data.
        order: the tensors of one step, each after what it reads.
        results: what each definition is at the position.
        carried: what the step is handed of earlier ones.
        slices: what it is handed of other tensors.
        before: of states that have values before the first position, the tensor of these, as long as the state looks back.
        history: of states that are read at positions that no fixed number of steps lies between, what is handed on of all positions so far.
    """

    clock: Axis
    now: Placeholder
    order: list[Compute | Recurrent]
    results: list[Compute]
    carried: dict[Carried, Placeholder]
    slices: dict[Placeholder, Slice]
    before: dict[State, Tensor]
    history: dict[State, Placeholder]

    def only(self, wanted: Sequence[Compute]) -> Step:
        """The same without tensors that are none of ``wanted``, and that these need not."""
        own: set[Tensor] = set(self.order)
        roots: list[Tensor] = [*wanted]
        needed = reached(roots, lambda tensor: [t for t in tensor.inputs if t in own])
        return replace(self, order=[t for t in self.order if t in needed])

    def renewed(self, order: Sequence[Tensor], known: Mapping[Tensor, Tensor]) -> Step:
        """The same with the tensors ``order``, and results that are what ``known`` says."""
        results = [known.get(t, t) for t in self.results]
        return replace(
            self,
            order=[t for t in order if isinstance(t, (Compute, Recurrent))],
            results=[t for t in results if isinstance(t, Compute)],
        )

    def depth(self, state: State) -> int:
        """How many steps ``state`` is carried for."""
        return max((lag for own, lag in self.carried if own is state), default=0)

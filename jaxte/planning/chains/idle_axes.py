"""States of a recurrence that are the same at all positions of an axis, as ones without it.

    a[t, j] = log(sum over i of exp(a[t - 1, i] - m[t, j]) * w[i, j]) + m[t, j],   m[t, j] = max over i of a[t - 1, i]

Tensors that are defined together have the same axes where one function says what they are, and what all of a step have in common needs none of them. With ``m[t]`` the
exponential does not depend on ``j`` any more, and the sum is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from jaxte.lang.expr import Axis, Expr, Read, as_expr
from jaxte.lang.graphs import among
from jaxte.lang.walk import free_axes, rewrite
from jaxte.planning.chains.looking_back import has_parts_of_its_own, with_parts
from jaxte.sets.intervals import known
from jaxte.tensors.compute import extract_reductions
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.recurrences.starts import Starts
from jaxte.tensors.tensor import Compute, Tensor

T = TypeVar("T")
Idle = Mapping[Tensor, frozenset[int]]
"""Of tensors, the axes at all positions of which they are the same."""


def without_idle_axes(group: Recurrence) -> Sequence[Tensor] | None:
    """What stands for the tensors of ``group``; None where its states depend on all of their axes."""
    if not has_parts_of_its_own(group):
        return None
    bodies = [with_parts(d, group) for d in group.definitions]
    idle = _idle(group, bodies)
    if not any(idle[s] for s in group.states):
        return None
    return _Narrow(group, bodies, idle).tensors()


def _idle(group: Recurrence, bodies: Sequence[Expr]) -> Idle:
    """The idle axes of the states, and of what these begin with: all that no body depends on but by reading other idle axes at them."""
    starts = Starts(group)
    for body in bodies:
        starts.choices(body)
    found: dict[Tensor, frozenset[int]] = {}
    for state, place in zip(group.states, group.places, strict=True):
        sizes = [known(as_expr(e)) or 0 for e in state.shape]
        found[state] = frozenset(n for n, size in enumerate(sizes) if n != place and size > 1)
        if state in starts.tensors:
            found[state] &= _free_of(starts.tensors[state])
    while True:
        every: dict[Tensor, frozenset[int]] = {**found}
        for state, begun in starts.tensors.items():
            every[begun] = found[state] & every.get(begun, found[state])
            found[state] = every[begun]
        left: dict[Tensor, frozenset[int]] = {}
        for state, own, body in zip(group.states, group.definitions, bodies, strict=True):
            axes = free_axes(rewrite(body, partial(_at_zero, idle=every)))
            left[state] = frozenset(n for n in found[state] if not among(own.axes[n], axes))
        if left == {s: every[s] for s in group.states}:
            return every
        found = {**left}


def _free_of(tensor: Tensor) -> frozenset[int]:
    """The axes that the definition of ``tensor`` does not depend on."""
    if type(tensor) is not Compute:
        return frozenset()
    axes = free_axes(tensor.body)
    return frozenset(n for n, a in enumerate(tensor.axes) if not among(a, axes))


def _at_zero(node: Expr, idle: Idle) -> Expr:
    """``node``, if it is a read, at the first position of axes at all positions of which it is the same."""
    if not isinstance(node, Read) or not idle.get(node.tensor):
        return node
    own = idle[node.tensor]
    return Read(node.tensor, [as_expr(0) if n in own else i for n, i in enumerate(node.indices)])


@dataclass(frozen=True, eq=False)
class _Narrow:
    """A recurrence without ``idle`` axes.

    Attributes:
        group: the recurrence with them.
        bodies: of its definitions, with those of the tensors between states.
    """

    group: Recurrence
    bodies: Sequence[Expr]
    idle: Idle

    def tensors(self) -> list[Tensor]:
        """What stands for the tensors of the recurrence."""
        group = self.group
        table: dict[Tensor, Tensor] = {}
        for tensor in self.idle:
            shape = tuple(self._kept(tensor, tensor.shape))
            if isinstance(tensor, State):
                table[tensor] = State(tensor.name, shape, tensor.dtype)
            elif isinstance(tensor, Compute) and self.idle[tensor]:
                table[tensor] = tensor.renewed(tensor.body, self._kept(tensor, tensor.axes))
        states = tuple(s for s in table.values() if isinstance(s, State))
        definitions = tuple(self._definition(n, table) for n in range(len(states)))
        places = tuple(
            place - sum(n < place for n in self.idle[s])
            for s, place in zip(group.states, group.places, strict=True)
        )
        made = Recurrence(states, definitions, places, group.reverse)
        return [self._whole(n, made.tensors[n]) for n in range(len(states))]

    def _kept(self, tensor: Tensor, of: Sequence[T]) -> list[T]:
        """Those of ``of``, one for each axis of ``tensor``, that stand for axes which are not idle."""
        return [e for n, e in enumerate(of) if n not in self.idle.get(tensor, ())]

    def _definition(self, number: int, table: Mapping[Tensor, Tensor]) -> Compute:
        state, own = self.group.states[number], self.group.definitions[number]

        def rule(node: Expr) -> Expr:
            if not isinstance(node, Read) or node.tensor not in table:
                return node
            return Read(table[node.tensor], self._kept(node.tensor, node.indices))

        axes = tuple(self._kept(state, own.axes))
        return Compute(
            state.name, axes, extract_reductions(state.name, axes, rewrite(self.bodies[number], rule))
        )

    def _whole(self, number: int, made: Tensor) -> Tensor:
        """The tensor with that number with all of its axes."""
        state, own = self.group.states[number], self.group.definitions[number]
        if not self.idle[state]:
            return made
        axes = [Axis(a.name, a.lo, a.hi) for a in own.axes]
        return Compute(state.name, axes, Read(made, self._kept(state, axes))).with_facts(own.facts)

"""Which parts of the steps of a loop are states of it: functions that cost more to compute again than to stack.

    h[t, i] = w[t] * tanh(h[t - 1, i] + h[t - 1, i - 1])     ->     v[t, i] = tanh(p[t, i]),   h[t, i] = w[t] * v[t, i]

A loop stacks a state where something reads it. What is between states is computed again from them in the loop from the other end, and once more behind it for the
gradients of weights. As a state ``v`` is stacked in place of ``h``, which derivatives do not read then. What it is taken of, ``p``, is one too: nothing reads it, but its
adjoint is computed once for all that it is made of.

Which values derivatives read, the partial derivatives of the operations say. The ones that are kept are those without which all of them together would take longer: by
what the states that have to be stacked then take, and by what is computed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from jaxte.algebra.sums import function_times
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import Axis, Call, Const, Expr, Read, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import CASES, PLACES
from jaxte.lang.scalars.table import TABLE
from jaxte.lang.walk import all_of, free_axes, postorder
from jaxte.planning.asked import Intermediates
from jaxte.planning.chains.values import Value, merged, needed_parts, value_of, with_states
from jaxte.sets.intervals import known
from jaxte.tensors.recurrences.nests import Clocked
from jaxte.tensors.recurrences.node import Recurrence, State
from jaxte.tensors.tensor import Compute, Tensor

_TIMES = 2  # what is no state is computed again in the loop from the other end, and behind it
_LEAST = 2  # operations an element that a state saves, or it is none: one more array in the text


def with_values(group: Recurrence, costs: Intermediates) -> Recurrence:
    """``group`` with such states, where an element of an array and a function take what ``costs`` says."""
    step = _Step(group, costs)
    if not step.is_plain:
        return group
    kept = step.kept()
    found = [*step.arguments(kept), *kept]
    return with_states(group, step.tensors, found) if found else group


@dataclass(frozen=True)
class _Step:
    """The definitions of a recurrence.

    Attributes:
        group: the recurrence.
        costs: of the platform.
    """

    group: Recurrence
    costs: Intermediates

    @cached_property
    def tensors(self) -> list[Compute]:
        return [t for t in self.group.inside if isinstance(t, Compute)]

    @cached_property
    def is_plain(self) -> bool:
        """Whether it consists of definitions of known sizes that sum and choose, few enough to be looked at."""
        own = [list(postorder(t.body)) for t in self.tensors]
        return (
            len(own) == len(self.group.inside)
            and all(known(a.hi) is not None for t in self.tensors for a in t.axes)
            and all(n.is_sum for nodes in own for n in nodes if isinstance(n, Reduce))
            and sum(map(len, own)) <= PLACES
        )

    @cached_property
    def clocks(self) -> Mapping[Tensor, Axis]:
        """The axis of the positions of each tensor that has one."""
        places = dict(zip(self.group.states, self.group.places, strict=True))
        clocked = Clocked(places, self.group.definitions)
        found = {t: clocked.place(t) for t in self.tensors}
        found |= dict(zip(self.group.definitions, self.group.places, strict=True))
        return {t: t.axes[place] for t, place in found.items() if place is not None}

    @cached_property
    def moving(self) -> frozenset[Expr]:
        """What depends on a state, of all bodies."""
        inside: set[Tensor] = {*self.group.states, *self.tensors}
        found: set[Expr] = set()
        for tensor in self.tensors:
            for node in postorder(tensor.body):
                if (isinstance(node, Read) and node.tensor in inside) or any(
                    c in found for c in node.children
                ):
                    found.add(node)
        return frozenset(found)

    @cached_property
    def needed(self) -> dict[Expr, None]:
        """What partial derivatives read of what depends on a state."""
        found: dict[Expr, None] = {}
        for tensor in self.tensors:
            for node in all_of(Call, tensor.body):
                if node in self.moving and is_inexact(node.dtype):
                    found |= dict.fromkeys(n for n in _read_by_partials(node) if n in self.moving)
        return found

    # --- which values are kept

    def kept(self) -> list[Value]:
        """The values that are rather kept."""
        found = [
            v
            for t in self.tensors
            for v in self._values(t, [n for n in postorder(t.body) if n in self.needed])
        ]
        # Values of a step that are looked at; of more, it is left as it is.
        if not 0 < len(found) <= CASES:
            return []
        cost = self._cost(found)
        for value in [*reversed(found)]:
            rest = [v for v in found if v is not value]
            without = self._cost(rest)
            if without <= cost + _LEAST * value.points:
                found, cost = rest, without
        return found

    def arguments(self, kept: Sequence[Value]) -> list[Value]:
        """What functions that are ``kept``, or that a definition is, are taken of."""
        own = {node for value in kept for node in value.nodes}
        roots = {n: v.tensor for v in kept for n in v.nodes} | {t.body: t for t in self.group.definitions}
        parts: dict[Compute, dict[Expr, None]] = {}
        for node, tensor in roots.items():
            if isinstance(node, Call) and not TABLE[node.op.name].cheap:
                parts.setdefault(tensor, {}).update(dict.fromkeys(c for c in node.children if c not in own))
        return [v for tensor, nodes in parts.items() for v in self._values(tensor, nodes)]

    def _values(self, tensor: Compute, nodes: Iterable[Expr]) -> list[Value]:
        """Those of ``nodes``, parts of the body of ``tensor``, that may be states, and are none yet; none is larger than the others are."""
        clock = self.clocks.get(tensor)
        if clock is None:
            return []
        needed = needed_parts(tensor)
        is_state = among(tensor, self.group.definitions)
        own = [n for n in nodes if n in self.moving and n in needed and not (is_state and n is tensor.body)]
        found = [v for v in (value_of(tensor, node, clock) for node in own) if v is not None]
        return [v for v in merged(found, clock) if v.points <= self._largest]

    @cached_property
    def _largest(self) -> int:
        return max(prod(known(a.hi) or 0 for a in own.axes) for own in self.group.definitions)

    def _cost(self, kept: Collection[Value]) -> float:
        """Operations that derivatives take for what is needed, where ``kept`` values are states."""
        states = {node for value in kept for node in value.nodes}
        stacked: set[State] = set()
        total = float(sum(self.costs.element * value.points for value in kept))
        left, seen = list(self.needed), set[Expr]()
        while left:
            node = left.pop()
            if node in seen or node not in self.moving or node in states:
                continue
            seen.add(node)
            total += _TIMES * self._price(node)
            if not isinstance(node, Read):
                left += node.children
            elif isinstance(node.tensor, State):
                stacked.add(node.tensor)
            elif isinstance(node.tensor, Compute):
                left.append(node.tensor.body)
        sizes = (prod(e for e in t.shape if isinstance(e, int)) for t in stacked)
        return total + self.costs.element * sum(sizes)

    def _price(self, node: Expr) -> float:
        """Operations that ``node`` takes by itself."""
        points = prod(known(a.hi) or 1 for a in free_axes(node))
        match node:
            case Read(tensor) if isinstance(tensor, State):
                return points
            case Reduce():
                return points * prod(known(a.hi) or 1 for a in node.axes)
            case Call(op) if not node.weak:
                return points * (1 if TABLE[op.name].cheap else self.costs.function * function_times(node))
        return 0


def _read_by_partials(node: Call) -> Iterator[Expr]:
    """What the partial derivatives of ``node`` read: it, its operands, and what conditions compare."""
    own: set[Expr] = {node, *node.args}
    for partial, operand in zip(TABLE[node.op.name].partials or (), node.args, strict=False):
        if partial is None or isinstance(operand, Const) or not is_inexact(operand.dtype):
            continue
        try:
            found = partial(node, *node.args)
        except DifferentiationError:  # it has none, and is not differentiated by that
            continue
        left = [] if found is None else [found]
        while left:
            part = left.pop()
            if part.dtype == "bool":
                left += part.children
                own |= {c for c in part.children if c.dtype != "bool"}
            elif part in own:
                yield part
            else:
                left += part.children

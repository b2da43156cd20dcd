"""Graphs whose chains are recurrences: which of them gain by it, and what reads them made anew.

What is gained is what is not done once for each step: its adjoint, its statements, and XLA's kernel of it. What may be lost is time in each step: XLA fuses
the steps of an elementwise chain, and vectorises the inside of a large array where its edges are apart, which it does not in the body of a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, as_expr
from jaxte.lang.graphs import ordered
from jaxte.lang.limits import HALVED, LONGEST_UNROLLED
from jaxte.lang.operators import DIVIDE
from jaxte.lang.walk import rewrite
from jaxte.planning.asked import longest_chained
from jaxte.planning.chains.extents import Apart, extents_of
from jaxte.planning.chains.found import FEWEST, Chain, chains_in
from jaxte.planning.chains.made import made_of
from jaxte.planning.chains.nearer import of_nearer_steps
from jaxte.tensors.recurrences.node import Recurrence, Recurrent
from jaxte.tensors.structure import topological_order
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, eq=False)
class _Stand:
    """What stands for a tensor of a chain: the tensor of all positions, at one of them."""

    tensor: Recurrent
    step: int

    def element(self, indices: Sequence[Expr]) -> Read:
        return Read(self.tensor, (as_expr(self.step), *indices))


# of recurrences, which of their tensors stands at which step for each tensor of the user; these are held as long as the recurrence is
_known: WeakKeyDictionary[Recurrence, Mapping[Tensor, tuple[int, int]]] = WeakKeyDictionary()


def with_chains(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """``outputs`` with the steps of loops as recurrences, where that takes no more time; the outputs themselves if there are none."""
    order = topological_order(outputs)
    if len(order) < FEWEST or not all(_is_plain(t) for t in order):
        return outputs
    found = _apart([of_nearer_steps(chain, order) for chain in chains_in(order)])
    longest = longest_chained() if found else 0
    chains = [chain for chain in found if gains(chain, longest)] if longest else []
    while chains:
        rolled = _Rolled(chains, outputs, order)
        try:
            made = rolled.outputs()
        except _NoRecurrence as refused:
            chains = [chain for chain in chains if chain is not refused.chain]
            continue
        for group in {own.tensor.group for own in rolled.stands.values()}:
            own = {t: s for t, s in rolled.stands.items() if s.tensor.group is group}
            _known[group] = {t: (s.tensor.position, s.step) for t, s in own.items()}
        return made
    return outputs


def with_known_chains(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """``outputs`` where tensors are read from recurrences that stand for them already in what some of the outputs need, as adjoints do."""
    order = topological_order(outputs)
    groups = {t.group for t in order if isinstance(t, Recurrent)}
    stands = {
        tensor: _Stand(group.tensors[number], step)
        for group in groups
        for tensor, (number, step) in _known.get(group, {}).items()
    }
    new: dict[Tensor, Tensor] = {}
    for tensor in order if stands else ():
        if type(tensor) is not Compute or tensor.override is not None:
            continue
        if tensor in stands:
            new[tensor] = tensor.renewed(stands[tensor].element(tensor.axes))
        else:
            renew(tensor, new, stands)
    return tuple(new.get(t, t) for t in outputs) if new else outputs


def _apart(chains: Sequence[Chain]) -> list[Chain]:
    """Those of ``chains`` that share no tensor with one before."""
    found: list[Chain] = []
    taken: set[Tensor] = set()
    for chain in chains:
        own = {t for role in chain.roles for t in role}
        if taken.isdisjoint(own):
            found.append(chain)
            taken |= own
    return found


def _is_plain(tensor: Tensor) -> bool:
    return tensor.override is None and (not tensor.inputs or type(tensor) is Compute)


def gains(chain: Chain, longest: int) -> bool:
    """Whether one step after the other, in a loop, takes no more time than all of them written out; where steps are not pointwise, those of up to ``longest`` elements."""
    try:
        extents = [extents_of(chain, n) for n in range(len(chain.roles))]
    except Apart:
        return False
    largest = 0
    functions = any(_is_function(row[-1]) for rows in chain.rows for row in rows)
    # Steps of sums, products and choices, which XLA fuses in longer runs and compiles in less time: the gradient of 16 took 0.7 to 1.7 times as long written out,
    # that of 48 1.4 to 2.3 times. So do steps whose extents differ, and which all take as long as the largest: 16 of a lattice took 0.4 times as long written out,
    # 48 0.7 times for 10 s less of XLA.
    is_plain = not functions or any(own.own for own in extents)
    if chain.length < (LONGEST_UNROLLED + 1 if is_plain else FEWEST):
        return False
    for role, own in zip(chain.roles, extents, strict=True):
        sizes = [e.value for e in own.largest if isinstance(e, Const) and isinstance(e.value, int)]
        if len(sizes) < len(own.largest):
            return False
        points = sum(prod(e for e in t.shape if isinstance(e, int)) for t in role)
        if prod(sizes) * chain.length > HALVED * points:
            return False
        largest = max(largest, prod(sizes))
    return largest <= longest or (functions and _is_pointwise(chain))


def _is_pointwise(chain: Chain) -> bool:
    """Whether each element is made of the same one of the step before: XLA would compute its functions again for each later step."""
    for role, rows in zip(chain.roles, chain.rows, strict=True):
        axes = role[-1].axes
        for row in rows:
            node = row[-1]
            if isinstance(node, Reduce):
                return False
            if isinstance(node, Read) and tuple(n.tensor for n in row if isinstance(n, Read)) in chain.reads:
                same = len(node.indices) == len(axes) and all(
                    a is b for a, b in zip(node.indices, axes, strict=True)
                )
                if not same:
                    return False
    return True


def _is_function(node: Expr) -> bool:
    """Whether ``node`` is a function as exp is, rather than a sum, a product or a choice."""
    return isinstance(node, Call) and node.op.result == "inexact" and node.op is not DIVIDE


class _NoRecurrence(Exception):
    def __init__(self, chain: Chain) -> None:
        super().__init__(chain)
        self.chain = chain


class _Rolled:
    """The graph of ``outputs`` with recurrences in place of ``chains``."""

    def __init__(self, chains: Sequence[Chain], outputs: Sequence[Tensor], order: Sequence[Tensor]) -> None:
        self._outputs = outputs
        self._place: dict[Tensor, tuple[Chain, int, int]] = {}
        for chain in chains:
            for role, tensors in enumerate(chain.roles):
                self._place |= {t: (chain, role, step) for step, t in enumerate(tensors)}
        self._read = self._read_outside(order)
        self._outside = {chain: chain.outside for chain in chains}
        self._made: dict[Chain, Mapping[int, Recurrent]] = {}
        self._new: dict[Tensor, Tensor] = {}
        self.stands: dict[Tensor, _Stand] = {}

    def outputs(self) -> tuple[Tensor, ...]:
        for tensor in ordered(self._outputs, self._below):
            if tensor in self._place:
                self._roll(tensor)
            elif isinstance(tensor, Compute):
                renew(tensor, self._new, self.stands)
        return tuple(self._new.get(t, t) for t in self._outputs)

    def _below(self, tensor: Tensor) -> Sequence[Tensor]:
        """What is made before ``tensor``: of a chain all that is read outside of it."""
        return self._outside[self._place[tensor][0]] if tensor in self._place else tensor.inputs

    def _read_outside(self, order: Sequence[Tensor]) -> Mapping[Chain, set[int]]:
        """The roles of each chain that something else reads."""
        found: dict[Chain, set[int]] = {chain: set() for chain, _, _ in self._place.values()}
        for tensor in self._outputs:
            if tensor in self._place:
                chain, role, _ = self._place[tensor]
                found[chain].add(role)
        for reader in order:
            own = self._place.get(reader)
            for tensor in reader.inputs:
                if tensor in self._place and (own is None or own[0] is not self._place[tensor][0]):
                    chain, role, _ = self._place[tensor]
                    found[chain].add(role)
        return found

    def _roll(self, tensor: Tensor) -> None:
        chain, role, step = self._place[tensor]
        assert isinstance(tensor, Compute)
        if chain not in self._made:
            made = made_of(chain, self._read[chain], self._new)
            if made is None:
                raise _NoRecurrence(chain)
            self._made[chain] = made
        if role in self._made[chain]:
            own = self.stands[tensor] = _Stand(self._made[chain][role], step)
            self._new[tensor] = tensor.renewed(own.element(tensor.axes))


def renew(tensor: Compute, new: dict[Tensor, Tensor], stands: Mapping[Tensor, _Stand] | None = None) -> None:
    """Adds to ``new`` what stands for ``tensor`` where it reads one of these, or what ``stands`` for a tensor."""
    if not any(t in new for t in tensor.inputs):
        return
    known = stands or {}

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in new:
            return node
        own = known.get(node.tensor)
        return Read(new[node.tensor], node.indices) if own is None else own.element(node.indices)

    new[tensor] = tensor.renewed(rewrite(tensor.body, rule))

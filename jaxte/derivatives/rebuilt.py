"""A graph over other tensors: given ones replaced by stand-ins, with one more axis where a stand-in has it.

The definitions are those of the graph, read at the same places. A tensor that reads a stand-in with the new axis has it too, in front:
``Y[i] = X[i + 1] * W[i]`` with a stand-in for X of which there are many is ``Y[b, i] = X[b, i + 1] * W[i]``. So a stencil for
each example of a batch is a stencil, and its adjoint is derived as that of any other definition.

Derivatives that were given go along: an override is asked about the tensors that it was written for, and what it returns
is rebuilt as the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from jaxte.autodiff.terms.beside import all_beside, beside
from jaxte.derivatives.overrides import Override
from jaxte.derivatives.stand_ins import aligned, copied, new_axis
from jaxte.lang.expr import Axis, Expr, Read
from jaxte.lang.walk import rewrite
from jaxte.tensors.facts import Fact, Permutation, SymmetricAdjacency
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.recurrences.node import Final, Kept, Recurrence, Recurrent, State
from jaxte.tensors.shapes import Extent, inserted
from jaxte.tensors.tensor import Compute, Extern, Tensor

Given = Mapping[Tensor, Override]


class Rebuilt:
    """What the tensors of a graph become.

    Args:
        table: stand-ins for the tensors that are given; what lies behind these is not looked at.
        at: for stand-ins with the new axis, the position of it.
        extent: of the new axis; None if there is none.
        given: overrides of tensors of the graph, beside those that tensors came with.
        renews: tensors that become what derivatives of derivatives have in place of them, with their overrides for once.

    Attributes:
        overrides: those of the tensors made so far.
    """

    def __init__(
        self,
        table: Mapping[Tensor, Tensor],
        at: Mapping[Tensor, int] | None = None,
        extent: Extent | None = None,
        given: Given | None = None,
        renews: Collection[Tensor] = (),
    ) -> None:
        self.renews = frozenset(renews)
        self.table = dict(table)
        self.at = dict({} if at is None else at)
        self.extent = extent
        self.given = {} if given is None else given
        self.overrides: dict[Tensor, Override] = {}
        self._groups: dict[int, Any] = {}
        self._overridden: dict[Override, list[Tensor]] = {}

    def tensors(self, graph: Sequence[Tensor]) -> list[Tensor]:
        """What stands for each tensor of ``graph``."""
        for tensor, new in self.table.items():
            if new is not tensor:
                new.with_facts(self._facts(tensor))
        order = self._order(graph)
        for tensor in order:
            self._add(tensor)
        for own, moved in self._overridden.items():
            self._give(own, moved)
        self._overridden.clear()
        for tensor in order:
            self._share_derived(tensor)
        return [self.table[t] for t in graph]

    def parts(self, graph: Sequence[Tensor]) -> list[Tensor]:
        """The same for what an override returned, whose tensors keep the overrides that they came with."""
        made = self.tensors(graph)
        for tensor, own in self.overrides.items():
            tensor.with_override(own)
        return made

    def _order(self, graph: Sequence[Tensor]) -> list[Tensor]:
        """The tensors that are not known yet, each after those that it or its override reads."""
        done: dict[Tensor, None] = {}
        entered = set(self.table)
        stack = [(t, False) for t in reversed(graph)]
        while stack:
            tensor, ready = stack.pop()
            if ready:
                done[tensor] = None
            elif tensor not in entered:
                entered.add(tensor)
                stack.append((tensor, True))
                own = self._override(tensor)
                stack.extend((t, False) for t in (() if own is None else own.dependencies))
                stack[:0] = [(t, False) for t in (() if own is None else own.outputs)]  # a region, whole
                stack.extend((t, False) for t in (self._renewed(tensor),) if t is not None)
                stack.extend((t, False) for t in reversed(tensor.inputs))
        return list(done)

    def _override(self, tensor: Tensor) -> Override | None:
        return self.given.get(tensor, tensor.override)

    def _renewed(self, tensor: Tensor) -> Tensor | None:
        own = self._override(tensor)
        return None if own is None or tensor not in self.renews else own.renewed

    def _add(self, tensor: Tensor) -> None:
        own = self._override(tensor)
        renewed = self._renewed(tensor)
        if own is not None and renewed is not None:
            known = self._override(renewed) is not None  # else its derivative is that of its body
            self.table[tensor] = copied(tensor.name, self.table[renewed], known)
            self._overridden.setdefault(own, []).append(tensor)
            return
        reads = [*tensor.inputs, *(() if own is None else own.dependencies)]
        if all(self.table[t] is t for t in reads):
            self.table[tensor] = tensor
            if own is not None:
                self.overrides[tensor] = own
            return
        batched = any(self.table[t] in self.at for t in reads)
        new: Tensor
        if isinstance(tensor, Compute):
            new = self._compute(tensor, batched)
        elif isinstance(tensor, Recurrent):
            new = self._recurrent(tensor)
        else:
            new = self._extern(tensor, batched)
        self.table[tensor] = new
        if batched:
            self.at[new] = 1 if isinstance(new, Kept) else 0  # behind the slots
        new.with_facts(self._facts(tensor))
        if own is not None:
            self._overridden.setdefault(own, []).append(tensor)

    def _give(self, own: Override, tensors: Sequence[Tensor]) -> None:
        """The override ``own`` of ``tensors``, as that of what stands for them."""
        outputs = tuple(self.table[t] for t in own.outputs)
        sources = tuple(dict.fromkeys(self.table[t] for t in own.dependencies))
        moved = _Moved(own, self)
        rule = None if own.tangent is None else moved.tangents
        once = own.once or any(self._renewed(t) is not None for t in tensors)
        primal = None if once or own.primal is None else partial(getattr, moved, "primal")
        new = Override(outputs, sources, moved.adjoints, rule, region=True, primal=primal, once=once)
        for tensor in tensors:
            self.overrides[self.table[tensor]] = new

    def _compute(self, tensor: Compute, batched: bool) -> Compute:
        lead = new_axis(self.extent, tensor) if batched else None

        def rule(node: Expr) -> Expr:
            return self._read(node, lead) if isinstance(node, Read) and node.tensor in self.table else node

        body = rewrite(tensor.body, rule)
        return tensor.over(tensor.axes if lead is None else (lead, *tensor.axes), body)

    def _read(self, read: Read, lead: Axis | None) -> Expr:
        new = self.table[read.tensor]
        if new not in self.at:
            return read if new is read.tensor else Read(new, read.indices)
        assert lead is not None
        return Read(new, inserted(read.indices, self.at[new], lead))

    def _extern(self, tensor: Tensor, batched: bool) -> Extern:
        assert isinstance(tensor, Extern)
        inputs = [self.table[t] for t in tensor.inputs]
        key = id(tensor.group)
        if key not in self._groups:
            mapped = [self.at.get(t) for t in inputs]
            self._groups[key] = tensor.group.moved(mapped if batched else None, self.extent)  # type: ignore[attr-defined]
        group = self._groups[key]
        lead = () if self.extent is None or not batched else (self.extent,)
        shape = (*lead, *tensor.shape)
        return Extern(tensor.name, shape, tensor.dtype, group.fn, inputs, tensor.position, group)

    def _recurrent(self, tensor: Recurrent) -> Recurrent:
        """One tensor of a recurrence over what stands for its inputs, all of which have the new axis if one of these has."""
        group, key = tensor.group, id(tensor.group)
        if key not in self._groups:
            many = any(self.table[t] in self.at for t in group.inputs)
            lead = () if not many or self.extent is None else (self.extent,)
            states = tuple(State(s.name, (*lead, *s.shape), s.dtype) for s in group.states)
            table: dict[Tensor, Tensor] = {**self.table, **dict(zip(group.states, states, strict=True))}
            at: dict[Tensor, int] = {**self.at, **{s: 0 for s in states if many}}
            again = Rebuilt(table, at, self.extent, self.given)
            made = again.parts(group.definitions)
            own = [t if t in again.at or not many else self._repeated(t) for t in made]
            definitions = tuple(t for t in own if isinstance(t, Compute))
            places = tuple(p + len(lead) for p in group.places)
            self._groups[key] = Recurrence(states, definitions, places, group.reverse)
        made = self._groups[key]
        if isinstance(tensor, Kept):
            return Kept(made, tensor.position, tensor.slots)
        found = (made.finals if isinstance(tensor, Final) else made.tensors)[tensor.position]
        assert isinstance(found, Recurrent)
        return found

    def _repeated(self, tensor: Tensor) -> Compute:
        """``tensor`` for each position of the new axis."""
        assert isinstance(tensor, Compute)
        lead = new_axis(self.extent, tensor)
        return tensor.over((lead, *tensor.axes), tensor.body)

    def _facts(self, tensor: Tensor) -> tuple[Fact, ...]:
        """What is known of ``tensor`` as it is known of what stands for it: most facts are about the last axis, and stay so.

        A fact that refers to a tensor holds where that one has the new axis too, or both have none. One about tensors of two axes
        does not hold for three.
        """
        batched = self.table[tensor] in self.at
        found: list[Fact] = []
        for fact in tensor.facts:
            if isinstance(fact, Permutation) and fact.inverse is not None:
                inverse = self.table.get(fact.inverse, fact.inverse)
                found.append(Permutation(inverse if (inverse in self.at) == batched else None))
            elif isinstance(fact, SymmetricAdjacency):
                slot = None if fact.slot is None else self.table.get(fact.slot, fact.slot)
                if not batched:
                    found.append(SymmetricAdjacency(slot))
            else:
                found.append(fact)
        return tuple(found)

    def _share_derived(self, tensor: Tensor) -> None:
        """Adjoints to come read the places of maxima and the like that the graph holds, and make no others."""
        new = self.table[tensor]
        if new is tensor or not (isinstance(tensor, Compute) and isinstance(new, Compute)):
            return
        for kind, part in all_beside(tensor).items():
            moved = self.table.get(part)
            if isinstance(moved, Compute):
                beside(new, kind, partial(lambda own: own, moved))


@dataclass(frozen=True, eq=False)
class _Moved:
    """The override of tensors that were rebuilt: that of the tensors which it was written for, rebuilt too."""

    override: Override
    rebuilt: Rebuilt

    def adjoints(
        self, outs: Sequence[Tensor], inputs: Sequence[Tensor], heads: Sequence[Tensor]
    ) -> list[Tensor]:
        prefix = heads[0].shape[: heads[0].ndim - outs[0].ndim]
        own, again = self._as_written(self.override.outputs, heads, prefix)
        pairs = list(self.override.adjoints(own, prefix))
        many = any(out in self.rebuilt.at for out in outs)
        found: dict[Tensor, list[Tensor]] = {}
        for (source, _), part in zip(pairs, again.parts([part for _, part in pairs]), strict=True):
            target = self.rebuilt.table[source]
            found.setdefault(target, []).append(self._at_axis(part, again, target, many, len(prefix)))
        return [found[source][0] for source in inputs]

    def tangents(
        self, outs: Sequence[Tensor], inputs: Sequence[Tensor], moves: Sequence[Tensor]
    ) -> list[Tensor]:
        prefix = moves[0].shape[: moves[0].ndim - inputs[0].ndim]
        own, again = self._as_written(self.override.dependencies, moves, prefix)
        parts = again.parts(self.override.tangents(own, prefix))
        return [
            self._at_axis(part, again, out, False, len(prefix)) for part, out in zip(parts, outs, strict=True)
        ]

    @cached_property
    def primal(self) -> Tensor | None:
        """What derivatives of derivatives have in place of the output."""
        known, made = self.rebuilt, self.override.renewed
        if made is None:
            return None
        again = Rebuilt(known.table, known.at, known.extent, known.given)
        (part,) = again.parts([made])
        (out,) = self.override.outputs
        return self._at_axis(part, again, known.table[out], False, 0)

    def _as_written(
        self, models: Sequence[Tensor], given: Sequence[Tensor], prefix: Sequence[Extent]
    ) -> tuple[list[Tensor], Rebuilt]:
        """Heads or tangents like those that the rule was written for, and what turns results of these into results of ``given``."""
        known = self.rebuilt
        table, at = dict(known.table), dict(known.at)
        own: list[Tensor] = []
        for model, tensor in zip(models, given, strict=True):
            if known.table[model] in known.at:
                own.append(Placeholder(tensor.name, (*prefix, *model.shape), tensor.dtype))
                at[tensor] = len(prefix) + known.at[known.table[model]]
            else:
                own.append(tensor)
            table[own[-1]] = tensor
        return own, Rebuilt(table, at, known.extent, known.given)

    def _at_axis(self, part: Tensor, again: Rebuilt, target: Tensor, many: bool, prefix: int) -> Tensor:
        known = self.rebuilt
        return aligned(part, again.at.get(part), known.at.get(target), many, prefix, known.extent)

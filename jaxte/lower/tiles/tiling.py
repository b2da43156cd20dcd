"""Passes over an axis, and the order of tensors and passes in a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from jaxte.lang.expr import Expr
from jaxte.lang.graphs import Members
from jaxte.lang.walk import reads_of
from jaxte.lower.tiles.blocks import Blocks
from jaxte.lower.tiles.carried_sums import Update
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True, eq=False)
class Tiles:
    """One pass over an axis.

    Attributes:
        members: the tensors that it computes block by block, and the position of the axis in each.
        updates: what each block does to the tensors that are carried through the pass.
        blocks: the slices that a block is handed, and its own tensors.
        inside: the large tensors that exist by blocks only.
        axis: name of the axis.
        inner: how a single block is computed: what its tensors are, in order, in tiles again where they are too large.
        is_kernel: whether the pass is a Pallas kernel; else a loop of XLA.
        together: blocks that are one loop.
    """

    members: tuple[tuple[Compute, int], ...]
    updates: tuple[Update, ...]
    blocks: Blocks
    inside: tuple[Compute, ...]
    axis: str
    inner: Tiling
    is_kernel: bool = False
    together: int = 1

    @property
    def wholes(self) -> tuple[Compute, ...]:
        """All that the pass makes."""
        return (*(m for m, _ in self.members), *(u.whole for u in self.updates))

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that have to exist in whole before."""
        return inputs_of(self.blocks, self.updates)


@dataclass(frozen=True, eq=False)
class Tiling:
    """A program in tiles.

    Attributes:
        order: what to compute, in order.
        stand_ins: tensors that are computed under another definition.
        refused: large tensors that exist in whole, with the reason.
        renewed: what stands for tensors whose definitions read others, in this order and in all that it holds.
        once: tensors that are computed before what reads them, and once.
    """

    order: tuple[Tensor | Tiles, ...]
    stand_ins: dict[Tensor, Compute]
    refused: dict[Tensor, str]
    renewed: dict[Tensor, Tensor] = field(default_factory=dict)
    once: frozenset[Tensor] = frozenset()

    def with_bodies(self, rule: Callable[[Compute], tuple[Sequence[Tensor], Expr]]) -> Tiling:
        """The same with the body that ``rule`` gives for each tensor, and the tensors that this reads before it."""
        original: dict[Tensor, Tensor] = {own: tensor for tensor, own in self.stand_ins.items()}
        order: list[Tensor | Tiles] = []
        new: dict[Tensor, Compute] = {}
        for item in self.order:
            if isinstance(item, Compute):
                before, body = rule(item)
                if body is not item.body:
                    own = new[original.get(item, item)] = item.renewed(body)
                    order += [*before, own]
                    continue
            order.append(item)
        return replace(self, order=tuple(order), stand_ins={**self.stand_ins, **new}) if new else self

    def with_definitions(
        self, found: Mapping[Tensor, Compute], unread: Iterable[Tensor], results: Members[Tensor]
    ) -> Tiling:
        """The same with other definitions, and without those of ``unread`` that are no results and that nothing reads then."""
        if not found:
            return self
        order = [found.get(t, t) if isinstance(t, Compute) else t for t in self.order]
        may_go = set(unread)
        kept: list[Tensor | Tiles] = []
        read: set[Tensor] = set()
        for item in reversed(order):
            if item not in may_go or item in read or item in results:
                kept.append(item)
                read.update(item.inputs)
        return replace(self, order=(*reversed(kept),), stand_ins={**self.stand_ins, **found})


def inputs_of(blocks: Blocks, updates: Sequence[Update]) -> list[Tensor]:
    """What a pass reads that it does not make."""
    rows = [*blocks.computed, *(u.new for u in updates)]
    own: set[Tensor] = {*rows, blocks.start, blocks.first}
    own |= {*(s.part for s in blocks.slices.values()), *(u.old for u in updates)}
    read = [t for row in rows for t in row.inputs if t not in own]
    for piece in blocks.slices.values():
        source = piece.source
        read += [source] if isinstance(source, Tensor) else [r.tensor for r in reads_of(source.body)]
    return list(dict.fromkeys(read))


def ordered(
    order: Sequence[Tensor],
    inside: Members[Tensor],
    tiles: Sequence[Tiles],
    stand_ins: dict[Tensor, Compute],
) -> tuple[Tensor | Tiles, ...]:
    """Tensors and passes, each after what it needs, as near to ``order`` as can be."""
    if not tiles:
        return tuple(order)
    maker: dict[Tensor, Tiles] = {member: t for t in tiles for member in t.wholes}
    items: list[Tensor | Tiles] = []
    seen: set[int] = set()
    for tensor in order:
        own = stand_ins.get(tensor, tensor)
        sources = [maker[s] for s in own.inputs if s in maker] if own is not tensor else []
        for item in (*sources, maker.get(tensor, own)):
            if item not in inside and id(item) not in seen:
                seen.add(id(item))
                items.append(item)
    numbers = {id(item): n for n, item in enumerate(items)}
    original: dict[Tensor, Tensor] = {stand_in: tensor for tensor, stand_in in stand_ins.items()}
    at: dict[Tensor, int] = {}
    for item in items:
        for made in item.wholes if isinstance(item, Tiles) else [original.get(item, item)]:
            at[made] = numbers[id(item)]
    waits = [{at[s] for s in item.inputs if s in at} - {n} for n, item in enumerate(items)]
    readers: list[list[int]] = [[] for _ in items]
    for n, needed in enumerate(waits):
        for source in needed:
            readers[source].append(n)
    ready = [n for n, needed in enumerate(waits) if not needed]
    heapify(ready)
    done: list[Tensor | Tiles] = []
    while ready:
        n = heappop(ready)
        done.append(items[n])
        for reader in readers[n]:
            waits[reader].discard(n)
            if not waits[reader]:
                heappush(ready, reader)
    return tuple(done)

"""Passes over an axis, and the order of tensors and passes in a program."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from jaxte.lower.tile_rows import Handed
from jaxte.tensor import Compute, Tensor
from jaxte.walk import reads_of


@dataclass(frozen=True)
class Tiles:
    """One pass over an axis.

    Attributes:
        members: the tensors that it computes and the position of the axis in each.
        results: their rows.
        rows: all that a row consists of, each after what it reads.
        inside: the large tensors that exist by rows only.
        handed: what each row is handed.
        extent: of the axis.
        count: rows computed together.
    """

    members: tuple[tuple[Compute, int], ...]
    results: tuple[Compute, ...]
    rows: tuple[Compute, ...]
    inside: tuple[Compute, ...]
    handed: tuple[Handed, ...]
    extent: int
    count: int

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that have to exist in whole before."""
        own: set[Tensor] = {*self.rows, *(h.row for h in self.handed)}
        read = [t for row in self.rows for t in row.inputs if t not in own]
        read += [r.tensor for h in self.handed for r in reads_of(h.array.body)]
        return list(dict.fromkeys(read))


def ordered(
    order: Sequence[Tensor],
    inside: Container[Tensor],
    tiles: Sequence[Tiles],
    stand_ins: dict[Tensor, Compute],
) -> tuple[Tensor | Tiles, ...]:
    """Tensors and passes, each after what it needs, as near to ``order`` as can be."""
    if not tiles:
        return tuple(order)
    maker: dict[Tensor, Tiles] = {member: t for t in tiles for member, _ in t.members}
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
        for made in [m for m, _ in item.members] if isinstance(item, Tiles) else [original.get(item, item)]:
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

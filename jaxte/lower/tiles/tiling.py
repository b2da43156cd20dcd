"""Passes over an axis, the order of tensors and passes in a program, and what a pass in tiles costs beside the same tensors in whole, for ``te.explain``.

Both are counted alike, each tensor by the general path of its reductions or as a band, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from heapq import heapify, heappop, heappush
from math import prod

from jaxte.lang.expr import Call, Expr, Reduce
from jaxte.lang.graphs import Members, among
from jaxte.lang.limits import FEW
from jaxte.lang.walk import free_axes, postorder, reads_of, reductions, substitute
from jaxte.lower.code.choice import Amounts, Choice, TilePass
from jaxte.lower.cost.platform import Rates
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import bytes_of, points
from jaxte.lower.tiles.blocks import Blocks
from jaxte.lower.tiles.carried_sums import Update
from jaxte.lower.tiles.sizes import IN_STEPS, inner_bytes, work_of
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

    def sharing(self, part: Tensor, tables: Mapping[Compute, Mapping[Expr, Expr]]) -> Tiling:
        """The same with ``part``, made before the first tensor that reads it; ``tables`` have what stands for parts of bodies."""
        first = next(t for t in self.order if isinstance(t, Compute) and t in tables)
        return self.with_bodies(
            lambda t: ([part] if t is first else [], substitute(t.body, tables.get(t, {})))
        )

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
    order: Sequence[Tensor], inside: Members[Tensor], tiles: Sequence[Tiles], stand_ins: dict[Tensor, Compute]
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


def with_costs(choices: Sequence[Choice], tiles: Tiles, policy: Policy) -> list[Choice]:
    """``choices``, those of the pass ``tiles``, with what the pass costs at each tensor that it makes."""
    cost = cache(partial(cost_of, tiles, policy))  # counted when somebody asks: nothing is chosen by it
    first = len(tiles.inside)  # those of what exists by blocks only come before
    return [*choices[:first], *(replace(c, tiles=cost) for c in choices[first:])]


def cost_of(tiles: Tiles, policy: Policy) -> TilePass:
    """What a pass costs, and what it would cost without tiles."""
    blocks = tiles.blocks
    return TilePass(
        tuple(whole.name for whole in tiles.wholes),
        tiles.axis,
        _count(tiles),
        blocks.size,
        _of_tiles(tiles, policy.rates),
        _of_whole(tiles, policy.rates),
        policy.max_memory,
        policy.rates.cache,
    )


def loop_of(tiles: Tiles) -> tuple[int, ...]:
    """The extents of the largest loop of the pass, over all blocks: as many positions along its axis as there are."""
    blocks = tiles.blocks
    loops = [_loop(t, blocks) for t in tiles.inner.order if isinstance(t, Compute)]
    return max(loops, key=prod, default=())


def _loop(tensor: Compute, blocks: Blocks) -> tuple[int, ...]:
    own = frozenset(tensor.axes)
    sums = reductions(tensor.body)
    loops = [(*(a for a in free_axes(n) if a in own), *n.axes) for n in sums]
    return max(
        (tuple(blocks.extent if a in blocks.axes else points([a]) for a in axes) for axes in loops),
        key=prod,
        default=(),
    )


def _count(tiles: Tiles) -> int:
    return -(-tiles.blocks.extent // tiles.blocks.size)


def _of_tiles(tiles: Tiles, rates: Rates) -> Amounts:
    """All blocks, one after the other; the temporaries are those of one."""
    slabs = {u.new for u in tiles.updates if u.slab is not None}
    carried = {u.new for u in tiles.updates} - slabs
    parts = []
    for item in tiles.inner.order:
        if isinstance(item, Tiles):
            parts.append(_of_tiles(item, rates))
        elif isinstance(item, Compute):
            parts.append(_of_tensor(item, rates, item not in carried, FEW))
    return _together(parts, _count(tiles))


def _of_whole(tiles: Tiles, rates: Rates) -> Amounts:
    """What the pass makes without tiles, with all of what exists by blocks only."""
    parts = [_of_tensor(tensor, rates, True) for tensor in tiles.inside]
    parts += [_of_tensor(tensor, rates, False) for tensor in tiles.wholes if not among(tensor, tiles.inside)]
    return _together(parts)


def _of_tensor(tensor: Compute, rates: Rates, is_temporary: bool, few: int = 1) -> Amounts:
    """All of ``tensor``; dimensions of at most ``few`` points are written out."""
    work = work_of(tensor)
    own = bytes_of(tensor) or 0
    held = max(inner_bytes(tensor.body, few), own if is_temporary else 0)
    work = replace(work, temporaries=held)
    moved = own + sum(bytes_of(t) or 0 for t in tensor.inputs)
    return Amounts(work.seconds(rates), _operations(tensor), moved, held)


def _together(parts: Iterable[Amounts], times: int = 1) -> Amounts:
    listed = list(parts)
    return Amounts(
        times * sum(p.seconds for p in listed),
        times * sum(p.flops for p in listed),
        times * sum(p.bytes for p in listed),
        max((p.temporaries for p in listed), default=0),
    )


def _operations(tensor: Compute) -> int:
    """Operations on floating point numbers, each at the points of what it depends on."""
    total = 0
    for node in postorder(tensor.body):
        if isinstance(node, Reduce):
            total += points({**dict.fromkeys(free_axes(node)), **dict.fromkeys(node.axes)})
        elif isinstance(node, Call) and not node.weak and "float" in node.dtype and node.op.name != "cast":
            total += points(free_axes(node))
    return total


def choices_of(tiles: Tiles, inner: Sequence[Choice]) -> list[Choice]:
    """What became of the tensors that the pass makes, and of those that exist in its tiles only."""
    blocks = tiles.blocks
    made = [(m, blocks.tensors[m, position]) for m, position in tiles.members]
    made += [(u.whole, u.new) for u in tiles.updates]
    shown = " and ".join(dict.fromkeys(whole.name for whole, _ in made))
    by_name = {c.tensor: c for c in inner}
    found = [Choice(t.name, f"inside the tiles of {shown}") for t in tiles.inside]
    for whole, own in made:
        below = by_name[own.name]
        kind = "kernel" if tiles.is_kernel else "tiles"
        form = f"{kind} of {blocks.size} {tiles.axis}: {below.form}"
        if tiles.together > 1:
            form = f"{IN_STEPS} of {tiles.axis}"
        found.append(Choice(whole.name, form, below.refused, below.reason, below.estimates))
    return found

"""What a pass in tiles costs, and what the same tensors would cost in whole: estimates for ``te.explain``.

Both are counted alike, each tensor by the general path of its reductions or as a band, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import prod

from jaxte.lang.expr import Call, Reduce
from jaxte.lang.graphs import among
from jaxte.lang.limits import FEW
from jaxte.lang.walk import free_axes, postorder, reductions
from jaxte.lower.code.vocabulary import Amounts, Choice, TilePass
from jaxte.lower.cost.platforms import Rates
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import bytes_of, points
from jaxte.lower.tiles.blocks import Blocks
from jaxte.lower.tiles.sizes import inner_bytes, work_of
from jaxte.lower.tiles.tiling import Tiles
from jaxte.tensors.tensor import Compute


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

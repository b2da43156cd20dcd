"""Reductions over the axis of the tiles: each tile adds its part to what the tiles before it made.

A reduction that reads the blocks of a pass, at one position ``u`` for each term, is taken over the positions of one block at a
time. ``u`` is affine; it is solved for an axis ``v`` of the reduction with the coefficient 1 or -1:

    db[j] = sum over i of h[i] * K[i, j]             u = i: every block adds to all of db
    dy[l] = sum over k of ds[l - k, k] * q[l - k]    u = l - k: a block of u adds to the l in [start, start + R + K - 1)

Where ``v`` is a reduced axis the whole result is carried from tile to tile. Where it is one of the result, a block adds to a *slab*
of the result: a slice that is as long as the block and its halo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxte.lang.expr import ZERO, Axis, Call, Expr, Read, Reduce, cast, conjunction, conjuncts
from jaxte.lang.graphs import Members, among, place_of
from jaxte.lang.limits import LONG_PRODUCT, LONG_SUM, MOST_LARGER
from jaxte.lang.walk import combine, free_axes, reads_of, substitute
from jaxte.lower.cost.general import is_contraction
from jaxte.lower.cost.work import points
from jaxte.lower.tiles.blocks import Blocks
from jaxte.lower.tiles.slices import NoBlock, Place, Window
from jaxte.sets.affine import from_linear, linear, normal
from jaxte.sets.digits import straightened
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import known, reach
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Compute

_REPEATABLE = ("max", "min", "any", "all", "argmax", "argmin")  # a position may count twice


@dataclass(frozen=True)
class Running:
    """A reduction that is carried through the tiles.

    Attributes:
        wholes: one tensor for each result of the reducer; the body of each is a reduction.
        axis: what the position is solved for, an axis of the tensors or of the reduction.
        position: the one in the tiles' axis that a term reads, an index expression.
        extent: of the tiles' axis.
        waste: how many times as many points as the reduction has the parts have.
        skewed: the reduction over other axes, of which the position is one of the result's.
    """

    wholes: tuple[Compute, ...]
    axis: Axis
    position: Expr
    extent: int
    waste: float
    skewed: Reduce | None = None

    @property
    def node(self) -> Reduce:
        node = self.wholes[0].body if self.skewed is None else self.skewed
        assert isinstance(node, Reduce)
        return node


@dataclass(frozen=True)
class Update:
    """What a tile does to a tensor that is carried.

    Attributes:
        whole: the tensor.
        old: its value before the tile, or the slab of it.
        new: the same after the tile.
        slab: where the slab is; None for the whole tensor.
        before, total: zeros in front of the carried tensor in the slab's dimension, and its extent with them.
    """

    whole: Compute
    old: Placeholder
    new: Compute
    slab: Window | None = None
    before: int = 0
    total: int = 0


def runnings(wholes: tuple[Compute, ...], inside: Members[Any]) -> Iterator[Running]:
    """The ways to take a reduction block by block, those with the fewest points first."""
    node = wholes[0].body
    assert isinstance(node, Reduce)
    axes = wholes[0].axes
    if not all(known(a.extent) is not None for a in (*axes, *node.axes)):
        return
    found: list[Running] = []
    for skewed in (None, *_skewed(node, inside)):
        own = node if skewed is None else skewed
        for position, extent in dict(_positions(own, inside)).items():
            form = linear(position)
            for axis in (*own.axes, *axes) if skewed is None else axes:
                if abs(form.coefficient(axis)) != 1 or (among(axis, axes) and len(free_axes(position)) == 1):
                    continue
                others = [a for a in (*axes, *own.axes) if a is not axis]
                waste = points(others) * extent / max(1, points((*axes, *own.axes)))
                # How many times as many points as the reduction has its parts may have.
                if waste <= MOST_LARGER and extent > 0:
                    found.append(Running(wholes, axis, position, extent, waste, skewed))
    yield from sorted(found, key=lambda r: r.waste)


def _skewed(node: Reduce, inside: Members[Any]) -> Iterator[Reduce]:
    """``sum over i of ds[i, i - d]`` as ``sum over j of ds[j + d, j]``: a block of rows adds to the ``d`` that lie around it."""
    read = next((r for r in reads_of(node) if r.tensor in inside), None)
    if read is None or not all(map(is_index, read.indices)):
        return
    rows = [axis for axis in node.axes if among(axis, read.indices)]
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        form = linear(index)
        for axis in rows:
            sign = form.coefficient(axis)
            if abs(sign) != 1 or not isinstance(extent, int) or len(free_axes(index)) < 2:
                continue
            own = Axis(axis.name, 0, extent, reduction=True)
            row = normal(sign * (own - from_linear(form.without(axis))))
            axes = [own if a is axis else a for a in node.axes]
            inside_too = [row >= axis.lo, row < axis.hi]
            where = conjunction([*(substitute(c, {axis: row}) for c in conjuncts(node.where)), *inside_too])
            exprs = [straightened(substitute(e, {axis: row})) for e in node.exprs]
            yield node.changed(exprs=exprs, axes=axes, where=straightened(where))


def _positions(node: Reduce, inside: Members[Any]) -> Iterator[tuple[Expr, int]]:
    """The positions in blocks that a term may stand for: those at which it reads what is computed inside."""
    read = next((r for r in reads_of(node) if r.tensor in inside), None)
    if read is None:
        yield from ((normal(a - a.lo), int(normal(a.extent))) for a in node.axes)
        return
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        if is_index(index) and isinstance(extent, int):
            yield normal(index), extent


def updates(blocks: Blocks, running: Running) -> list[Update]:
    """What a tile of ``blocks`` does to the tensors of ``running``.

    Raises:
        NoBlock: a term reads more than one position.
    """
    if among(running.axis, running.node.axes):
        return _over_whole(blocks, running)
    return _over_slab(blocks, running)


def _over_whole(blocks: Blocks, running: Running) -> list[Update]:
    node, axis = running.node, running.axis
    sign = linear(running.position).coefficient(axis)
    own = blocks.axis(axis.name, blocks.size, reduction=True)
    rest = normal(running.position - sign * axis)
    meaning = normal(sign * (blocks.origin + own - rest))
    axes = tuple(own if a is axis else a for a in node.axes)
    place = Place(axis, meaning, own)
    parts = _parts(blocks, running, place, axes, [])
    return [
        Update(whole, old, _combined(whole, running, parts, whole.axes, olds, n))
        for olds in [_olds(running, [w.shape for w in running.wholes])]
        for n, (whole, old) in enumerate(zip(running.wholes, olds, strict=True))
    ]


def _over_slab(blocks: Blocks, running: Running) -> list[Update]:
    node, axis = running.node, running.axis
    sign = linear(running.position).coefficient(axis)
    rest = normal(running.position - sign * axis)
    ends = reach(linear(rest))
    if ends is None:
        raise NoBlock(f"the part of {running.wholes[0].name} that a block adds to is not known")
    least, most = ends
    offset = -most if sign > 0 else least - blocks.size + 1
    own = blocks.axis(axis.name, blocks.size + most - least)
    at = normal(sign * (own + offset) + rest)
    where = [at >= 0, at < blocks.size]
    place = Place(axis, normal(sign * blocks.origin + own + offset), at)
    parts = tuple(_over_block(blocks, p, at) for p in _parts(blocks, running, place, node.axes, where))
    axes = tuple(own if a is axis else a for a in running.wholes[0].axes)
    dim = place_of(axis, running.wholes[0].axes)
    last = sign * (blocks.extent - blocks.size) + offset
    low, high = min(offset, last), max(offset, last) + int(own.hi)
    before = max(0, -low)
    total = before + max(high, int(axis.hi))
    window = Window(dim, sign, offset + before, int(own.hi))
    shapes = [tuple(int(a.hi) for a in axes)] * len(running.wholes)
    olds = _olds(running, shapes)
    return [
        Update(whole, old, _combined(whole, running, parts, axes, olds, n), window, before, total)
        for n, (whole, old) in enumerate(zip(running.wholes, olds, strict=True))
    ]


def _olds(running: Running, shapes: Sequence[tuple[int | Expr, ...]]) -> list[Placeholder]:
    named = zip(running.wholes, shapes, strict=True)
    return [Placeholder(f"{whole.name}_so_far", shape, whole.dtype) for whole, shape in named]


def _parts(
    blocks: Blocks, running: Running, place: Place, axes: Sequence[Axis], where: list[Expr]
) -> tuple[Expr, ...]:
    """The results of the reduction over one block."""
    node = running.node
    if blocks.extent % blocks.size and node.reducer.name not in _REPEATABLE:
        local = blocks.reduce(node, place, axes, where)
        product = blocks.once(local.exprs[0], place.at) if node.is_sum else None
        if product is not None:
            return (node.changed(exprs=(product,), axes=axes, where=local.where),)
        where = [*where, blocks.number(blocks.origin + place.at) >= Read(blocks.first, ())]
    if _is_argument(node):  # the position within the block is what XLA finds fast
        value = node.changed(exprs=(cast(place.axis, "int32"), node.exprs[1]))
        local = blocks.reduce(value, place, axes, where)
        exprs = (cast(place.at, "int32"), local.exprs[1])
        at, best = (Reduce(node.reducer, exprs, axes, local.where, n) for n in (0, 1))
        shift = blocks.number(normal(place.meaning - place.at - place.axis.lo))
        return at + shift, best
    local = blocks.reduce(node, place, axes, where)
    return tuple(
        Reduce(node.reducer, local.exprs, local.axes, local.where, n) for n in range(node.reducer.arity)
    )


def _over_block(blocks: Blocks, part: Expr, at: Expr) -> Expr:
    """``part``, a reduction where ``at`` is a position of the block, over these positions in place of an axis that is longer.

    A mask over that axis would make a tile of one row as large as the whole.
    """
    if not isinstance(part, Reduce) or not part.reducer.ignores_order:
        return part
    form = linear(at)
    long = [a for a in part.axes if abs(form.coefficient(a)) == 1 and points([a]) > blocks.size]
    longest = max(long, key=lambda a: points([a]), default=None)
    if longest is None:
        return part
    own = blocks.axis(longest.name, blocks.size, reduction=True)
    sign = form.coefficient(longest)
    table: dict[Expr, Expr] = {longest: normal(sign * (own - from_linear(form.without(longest))))}
    inside = conjunction([table[longest] >= longest.lo, table[longest] < longest.hi])
    held = [c for c in conjuncts(part.where) if not among(c, [at >= 0, at < blocks.size])]
    exprs = [straightened(substitute(e, table)) for e in part.exprs]
    where = straightened(conjunction([*(substitute(c, table) for c in held), inside]))
    axes = [own if a is longest else a for a in part.axes]
    return part.changed(exprs=exprs, axes=axes, where=where)


def _is_argument(node: Reduce) -> bool:
    """Whether ``node`` is the position, along a single axis, of the least or the largest value."""
    if node.reducer.name not in ("argmax", "argmin") or len(node.axes) != 1:
        return False
    own = node.exprs[0]
    while isinstance(own, Call) and own.op.name == "cast":
        own = own.args[0]
    return is_index(own) and normal(own - node.axes[0] + node.axes[0].lo) is ZERO


def _combined(
    whole: Compute,
    running: Running,
    parts: tuple[Expr, ...],
    axes: Sequence[Axis],
    olds: Sequence[Placeholder],
    position: int,
) -> Compute:
    """What was there before the tile, combined with what the tile makes."""
    before = tuple(Read(old, axes) for old in olds)
    body = combine(running.node.reducer, before, parts)[position]
    if body.dtype != whole.dtype:
        body = cast(body, whole.dtype)
    return Compute(f"{whole.name}_{running.axis.name}", axes, body)


def carried(update: Update) -> Compute:
    """The carried tensor before the first tile: what changes nothing."""
    whole = update.whole
    node = whole.body
    assert isinstance(node, Reduce)
    extents = [int(a.hi) for a in whole.axes]
    if update.slab is not None:
        extents[update.slab.dim] = update.total
    axes = [Axis(a.name, 0, e) for a, e in zip(whole.axes, extents, strict=True)]
    identity = node.reducer.identity[node.position]
    return Compute(
        whole.name, axes, identity if identity.dtype == whole.dtype else cast(identity, whole.dtype)
    )


def least_positions(running: Running) -> int:
    """How many positions a block has to have so that a part of ``running`` is worth reading and writing what is carried."""
    node = running.node
    terms = points(a for a in node.axes if a is not running.axis)
    return -(-(LONG_PRODUCT if is_contraction(node) else LONG_SUM) // max(1, terms))

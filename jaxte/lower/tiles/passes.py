"""A pass over an axis that is being put together, and how many positions its blocks have.

Reductions that are faster one position after the other (:mod:`jaxte.lower.cost.steps`) are passes of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt

from jaxte.lang.expr import TRUE, Expr, Read, Reduce, cast
from jaxte.lang.graphs import reached
from jaxte.lang.limits import BLOCK, FEW, MARGIN, MOST_TERMS, VECTOR
from jaxte.lang.walk import free_axes, outermost, substitute
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.steps import is_in_steps, seconds_in_steps, seconds_otherwise, with_choice
from jaxte.lower.cost.work import bytes_of
from jaxte.lower.forms.band.recognise import recognise_band
from jaxte.lower.forms.band.spec import BandSpec
from jaxte.lower.forms.data.recognise import recognise_scatter
from jaxte.lower.forms.data.scatter_spec import ScatterSpec
from jaxte.lower.tiles.blocks import Blocks
from jaxte.lower.tiles.carried_sums import Running, Update, runnings, updates
from jaxte.lower.tiles.sizes import IN_STEPS, inner_bytes, is_written, wanted
from jaxte.lower.tiles.slices import NoBlock
from jaxte.tensors.reducers import in_wide
from jaxte.tensors.tensor import Compute, Tensor


@dataclass(frozen=True)
class Pass:
    """A pass as far as it is known.

    Attributes:
        inside: the large tensors that exist by blocks only.
        members: the tensors that it makes block by block, with the position of the axis in each.
        sums: the reductions that are carried through it.
        extent: of its axis.
        blocks, updates: what a tile computes.
        of_parts: bytes of a position of the largest tensor of the passes that it was put together from, 0 for none.
        in_steps: whether each block is a single position, and a few of them are one loop.
    """

    inside: Collection[Tensor]
    members: tuple[tuple[Compute, int], ...]
    sums: tuple[Running, ...]
    extent: int
    blocks: Blocks
    updates: tuple[Update, ...]
    of_parts: int = 0
    in_steps: bool = False

    @property
    def wholes(self) -> list[Compute]:
        return [*(m for m, _ in self.members), *(w for s in self.sums for w in s.wholes)]

    @cached_property
    def largest(self) -> int:
        """Bytes of a single position of the largest tensor."""
        return self.of_parts or largest_block(self.blocks, self.updates)[0] // self.blocks.size

    def of_size(self, size: int) -> Pass:
        """The same with other blocks."""
        return make_pass(self.inside, self.members, self.sums, self.extent, size)

    def square(self, limit: float) -> Pass:
        """The same with blocks that are to be computed in tiles of another axis, too, of about as many positions."""
        return self.of_size(_even(self.extent, min(BLOCK, isqrt(int(limit) // 8))))

    def with_others(self, other: Pass) -> Pass:
        """The pass that makes what ``other`` makes too.

        Raises:
            NoBlock: one of them reads more than a block of what the other one makes.
        """
        members, sums = (*self.members, *other.members), (*self.sums, *other.sums)
        both = make_pass(self.inside, members, sums, self.extent)
        return replace(both, of_parts=max(self.largest, other.largest))

    def reached(self, start: Iterable[Tensor]) -> set[tuple[Compute, int]]:
        """The blocks that tensors of a tile read, directly or through others."""
        keys: dict[Tensor, tuple[Compute, int]] = {b: key for key, b in self.blocks.tensors.items()}
        own: set[Tensor] = {*self.blocks.computed}
        first = [t for tensor in start for t in tensor.inputs if t in own]
        seen = reached(first, lambda tensor: [t for t in tensor.inputs if t in own])
        return {keys[t] for t in seen if t in keys}


def make_pass(
    inside: Collection[Tensor],
    members: Sequence[tuple[Compute, int]],
    sums: Sequence[Running],
    extent: int,
    size: int = 0,
) -> Pass:
    """A pass in blocks of ``size`` positions that makes ``members`` and ``sums``.

    Raises:
        NoBlock: one of them reads more than a block of what is computed inside.
    """
    results = {m for m, _ in members}
    blocks = Blocks({*inside, *results}, extent, size or min(BLOCK, -(-extent // 2)), results)
    for member, position in members:
        blocks.block(member, position)
    found = tuple(u for s in sums for u in updates(blocks, s))
    return Pass(inside, tuple(members), tuple(sums), extent, blocks, found)


def step_pass(running: Running) -> Pass:
    """A pass that makes one reduction position by position.

    Raises:
        NoBlock: a position reads more than one of what it reads.
    """
    blocks = Blocks(frozenset(), running.extent, 1, rows_of=running.wholes[0].axes[-1])
    found = tuple(_with_choices(u) for u in updates(blocks, running))
    return Pass(frozenset(), (), (running,), running.extent, blocks, found, in_steps=True)


def _with_choices(update: Update) -> Update:
    table: dict[Expr, Expr] = {node: with_choice(node) for node in outermost(update.new.body)}
    body = substitute(update.new.body, table)
    return update if body is update.new.body else replace(update, new=update.new.renewed(body))


def sized(known: Pass, limit: float) -> Pass:
    """``known`` with as many positions in a block as ``limit`` bytes for each tensor allow."""
    size = _even(known.extent, int(limit // max(1, known.largest)))
    found = known.of_size(size)
    while size > 1 and largest_block(found.blocks, found.updates)[0] > limit:
        size = _even(known.extent, size // 2)
        found = known.of_size(size)
    return found


def _even(extent: int, most: int) -> int:
    """A number of positions, at most half of them and at most ``most``: one that divides, if it is above half of that."""
    most = max(1, min(most, -(-extent // 2)))
    divisor = next((d for d in range(most, most // 2, -1) if extent % d == 0), 0)
    return divisor or (most // VECTOR * VECTOR if most >= 2 * VECTOR else most)


def largest_block(blocks: Blocks, updates: Iterable[Update]) -> tuple[int, Compute]:
    """Bytes of the largest tensor of a tile, or of what it evaluates, and what that is. Results exist in whole anyway."""
    sizes = [
        (max(bytes_of(block) or 0, inner_bytes(block.body, FEW, chosen=True)), tensor)
        for (tensor, _), block in blocks.tensors.items()
    ]
    sizes += [
        (max((bytes_of(u.new) or 0) if u.slab else 0, inner_bytes(u.new.body, FEW, chosen=True)), u.whole)
        for u in updates
    ]
    return max(sizes, key=lambda s: s[0])


def apart(tensor: Compute, node: Reduce) -> tuple[tuple[Compute, ...], Compute]:
    """The results of ``node``, a reduction in the body of ``tensor``, as tensors of the same axes, and ``tensor`` in terms of them."""
    free, own = free_axes(node), in_wide(node)
    axes = [a for a in tensor.axes if a in free or tensor.body is own]
    wholes = []
    for n in range(node.reducer.arity):
        if tensor.body is own and n == node.position:
            wholes.append(tensor)
        else:
            body = Reduce(own.reducer, own.exprs, own.axes, own.where, n)
            wholes.append(Compute(f"{tensor.name}_{node.reducer.label}", axes, body))
    if wholes[node.position] is tensor:
        return tuple(wholes), tensor
    read = cast(Read(wholes[node.position], axes), node.dtype)
    return tuple(wholes), Compute(tensor.name, tensor.axes, substitute(tensor.body, {node: read}))


def passes_in_steps(tensor: Compute, policy: Policy) -> tuple[list[Pass], Compute] | None:
    """Passes for the reductions of ``tensor`` that are faster position by position, and it in terms of them; None where there are none."""
    form = wanted(policy, [tensor.name, tensor.part_of])
    if IN_STEPS in policy.without or form not in (None, IN_STEPS):
        return None
    whole, found = tensor, []
    for node in outermost(tensor.body):
        step = with_choice(node)
        if not is_in_steps(step) or isinstance(recognise_band(tensor.axes, node), BandSpec):
            continue
        if isinstance(recognise_scatter(tensor.axes, node), ScatterSpec):
            continue  # each value is added where it goes, not compared with all positions
        if form is None and len(free_axes(node)) < 2 and not is_written(node):
            continue
        if form == IN_STEPS or _steps_are_faster(step, policy.facts):
            wholes, whole = apart(whole, node)
            found.append(wholes)
    if not found:
        return None
    try:
        steps = [step_pass(next(runnings(wholes, {}))) for wholes in found]
    except NoBlock:
        return None
    if any(n.where is not TRUE for p in steps for u in p.updates for n in outermost(u.new.body)):
        return None  # each step would ask where it counts
    return steps, whole


def _steps_are_faster(node: Reduce, facts: Platform) -> bool:
    if not facts.lays_out_sums:
        return False
    columns = MOST_TERMS if facts.copies_for_products else 0
    laid_out = inner_bytes(node, 1, columns, facts.lays_out_sums, facts.fuses_products) > 0
    return seconds_otherwise(node, facts, laid_out) > MARGIN * seconds_in_steps(node, facts)

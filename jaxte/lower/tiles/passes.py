"""A pass over an axis that is being put together, and how many positions its blocks have.

Which passes can be Pallas kernels, and how large their blocks are.

A kernel makes its results block by block: nothing is carried from one block to the next, since a GPU runs them side by side. So each adjoint has
blocks of its own, and what several need is computed in each, as in the two backward kernels of attention.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt

from jaxte.lang import dtypes
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Expr, Reduce, as_expr
from jaxte.lang.graphs import reached
from jaxte.lang.limits import BLOCK, FEW, MOST_TERMS, VECTOR
from jaxte.lang.walk import free_axes, postorder, substitute
from jaxte.lower.arrays.data import INTERPRETER, TRITON
from jaxte.lower.cost.general import is_contraction
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.steps import with_choice
from jaxte.lower.cost.work import bytes_of, points
from jaxte.lower.tiles.blocks import Blocks
from jaxte.lower.tiles.carried_sums import Running, Update, outermost, updates
from jaxte.lower.tiles.sizes import KERNEL, inner_bytes, overlaps, wanted
from jaxte.lower.tiles.tiling import Tiles
from jaxte.sets.intervals import known as fixed
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


def is_for_kernel(policy: Policy, tensor: Tensor) -> bool:
    """Whether the user asks for ``tensor`` as a kernel, by its name or for all."""
    return wanted(policy, [tensor.name]) == KERNEL


def why_no_kernel(own: Pass, policy: Policy) -> str:
    """What a kernel cannot take of a pass; empty where there is nothing."""
    facts, platform = policy.facts, policy.platform
    met: list[Tensor] = [*own.blocks.computed, *_given(own)]
    for tensor in met:
        if any(fixed(as_expr(e)) is None for e in tensor.shape):
            return f"the size of {tensor.name} is symbolic, and a kernel has blocks of fixed sizes"
    if facts.kernels == INTERPRETER:
        return ""
    for tensor in met:
        if dtypes.width(tensor.dtype) > dtypes.width("float32") or "complex" in tensor.dtype:
            return f"{tensor.name} is {tensor.dtype}, and kernels for {platform} take real numbers of up to 32 bits"
    if (held := position_bytes(own)) > facts.kernel_memory:
        return f"one position takes {held:,} bytes, more than the {facts.kernel_memory:,} of a block for {platform}"
    wholes = {t: bytes_of(t) or 0 for t in _read_in_whole(own)}
    if (read := sum(wholes.values())) > facts.kernel_wholes:
        largest = max(wholes, key=lambda t: wholes[t])
        return f"each block reads {read:,} bytes in whole, most of them of {largest.name}, more than the {facts.kernel_wholes:,} of a core of {platform}"
    return _why_no_triton(own) if facts.kernels == TRITON else ""


def position_bytes(own: Pass) -> int:
    """Bytes of the largest array of one position of a block: a tensor, or what a reduction reduces that is no product of matrices."""
    sizes = [own.largest]
    for tensor in own.blocks.computed:
        for node in postorder(tensor.body):
            if isinstance(node, Reduce) and not is_contraction(node):
                over = points({**dict.fromkeys(free_axes(node)), **dict.fromkeys(node.axes)})
                sizes.append(dtypes.width(node.dtype) * over // own.blocks.size)
    return max(sizes)


def kernel_sized(own: Pass, limit: float) -> Pass:
    """``own`` with blocks of the largest power of two that ``limit`` bytes for each tensor allow; of fewer than eight positions any size."""
    most = max(1, min(int(limit // max(1, position_bytes(own))), -(-own.extent // 2)))
    power = 1 << (most.bit_length() - 1)
    while power > VECTOR and own.extent % power:
        power //= 2
    return own.of_size(power if power >= VECTOR or own.extent % power == 0 else most)


def verify_named(policy: Policy, planned: Iterable[Tensor | Tiles], why: dict[Tensor, str]) -> None:
    """Checks that what was asked for as a kernel by its name is in one.

    Raises:
        LoweringError: it is not; the message says why.
    """
    for item in planned:
        for tensor in _outside_kernels(item):
            if policy.forms.get(tensor.name) == KERNEL:
                reason = why.get(
                    tensor, "no kernel was asked for that makes it, or it has no blocks along an axis"
                )
                raise LoweringError(
                    f"forms asks for {tensor.name} as a {KERNEL} on {policy.platform}, which it cannot be: {reason}; "
                    "leave it out of forms, and te.explain shows the forms that it has"
                )


def _outside_kernels(item: Tensor | Tiles) -> Sequence[Tensor]:
    """What ``item`` makes that is in no kernel."""
    if isinstance(item, Tiles):
        return () if item.is_kernel else (*item.wholes, *item.inside)
    return (item,) if isinstance(item, Compute) else ()


def _given(own: Pass) -> list[Tensor]:
    """What a block gets: its parts, and what it reads as it is."""
    return [piece.part for piece in own.blocks.slices.values()] + own.blocks.wholes


def _read_in_whole(own: Pass) -> Iterator[Tensor]:
    """The arrays that lie in the memory of the core for every block, but for those whose rows are the blocks."""
    yield from own.blocks.wholes
    for piece in own.blocks.slices.values():
        if not piece.windows:
            yield piece.part
        elif isinstance(piece.source, Tensor) and any(w.length > own.blocks.size for w in piece.windows):
            yield piece.source


def _why_no_triton(own: Pass) -> str:
    for tensor in own.blocks.computed:
        odd = next((e for e in map(fixed, map(as_expr, tensor.shape[1:])) if e and e & (e - 1)), None)
        if odd is not None:
            return f"{tensor.name} has an extent of {odd}, and Triton takes powers of two"
        short = [
            a
            for n in postorder(tensor.body)
            if isinstance(n, Reduce) and not is_contraction(n)
            for a in n.axes
            if points([a]) <= MOST_TERMS
        ]
        if short or overlaps(tensor):
            return (
                f"{tensor.name} is summed position by position, and Triton takes no slices of what is loaded"
            )
    return ""

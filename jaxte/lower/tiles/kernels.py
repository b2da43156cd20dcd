"""Which passes can be Pallas kernels, and how large their blocks are.

A kernel makes its results block by block: nothing is carried from one block to the next, since a GPU runs them side by side. So each adjoint has
blocks of its own, and what several need is computed in each, as in the two backward kernels of attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jaxte.lang import dtypes
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import Reduce, as_expr
from jaxte.lang.walk import free_axes, postorder
from jaxte.lower.arrays.kernels import INTERPRETER, TRITON
from jaxte.lower.cost.default_work import is_contraction
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import bytes_of, points
from jaxte.lower.limits import MOST_COLUMNS
from jaxte.lower.tiles.passes import Pass
from jaxte.lower.tiles.sizes import KERNEL, overlaps, wanted
from jaxte.lower.tiles.tiling import Tiles
from jaxte.sets.intervals import known as fixed
from jaxte.tensors.tensor import Compute, Tensor

_WIDEST = 4  # bytes of an element that compiled kernels take
_ROWS = 8  # positions of a block from which on it is worth being a power of two


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
        if dtypes.width(tensor.dtype) > _WIDEST or "complex" in tensor.dtype:
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
    while power > _ROWS and own.extent % power:
        power //= 2
    return own.of_size(power if power >= _ROWS or own.extent % power == 0 else most)


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
    return [piece.part for piece in own.blocks.slices.values()] + _read_as_it_is(own)


def _read_as_it_is(own: Pass) -> list[Tensor]:
    blocks = own.blocks
    inner: set[Tensor] = {*blocks.computed, blocks.start, blocks.first}
    inner |= {piece.part for piece in blocks.slices.values()}
    return list(dict.fromkeys(t for row in blocks.computed for t in row.inputs if t not in inner))


def _read_in_whole(own: Pass) -> Iterator[Tensor]:
    """The arrays that lie in the memory of the core for every block, but for those whose rows are the blocks."""
    yield from _read_as_it_is(own)
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
            if points([a]) <= MOST_COLUMNS
        ]
        if short or overlaps(tensor):
            return (
                f"{tensor.name} is summed position by position, and Triton takes no slices of what is loaded"
            )
    return ""

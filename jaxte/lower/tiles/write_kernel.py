"""Tiles as one Pallas kernel: which passes can be one, how large their blocks are, and the same function of a tile, which loads the windows that it needs.

A kernel makes its results block by block: nothing is carried from one block to the next, since a GPU runs them side by side. So each adjoint has
blocks of its own, and what several need is computed in each, as in the two backward kernels of attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxte.lang import dtypes
from jaxte.lang.errors import LoweringError
from jaxte.lang.expr import as_expr
from jaxte.lang.limits import MOST_TERMS, VECTOR
from jaxte.lang.walk import free_axes, reductions
from jaxte.lower.arrays.data import INTERPRETER, TRITON, Kernel, Loaded
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.code.vocabulary import AnyStatement, Statement, tensor_name
from jaxte.lower.cost.general import is_contraction
from jaxte.lower.cost.policy import Policy
from jaxte.lower.cost.work import bytes_of, points
from jaxte.lower.tiles.passes import Pass
from jaxte.lower.tiles.sizes import KERNEL, overlaps, wanted
from jaxte.lower.tiles.slices import Slice, begin
from jaxte.lower.tiles.tiling import Tiles, choices_of
from jaxte.lower.tiles.write import Text, Writer, Written, returning
from jaxte.sets.intervals import known as fixed
from jaxte.tensors.tensor import Compute, Tensor


def kernel_statements(tiles: Tiles, idents: Mapping[Tensor, str], writer: Writer) -> Written:
    """The statements of one pass as a kernel; arguments as those of ``tile_statements``."""
    names, blocks = writer.shared.names, tiles.blocks
    targets: dict[Tensor, str] = {whole: names.new(whole.name) for whole in tiles.wholes}
    label = next(iter(targets.values()))
    text = _KernelText(tiles, dict(idents), writer, label)
    name = names.new(f"{label}_tile")
    lines = text.handed(targets)
    inner = writer.program(tiles.inner, text.known, label)
    rows = [tensor_name(inner.names[own], own) for own in (blocks.tensors[m] for m in tiles.members)]
    params = [*text.parameters, *text.of_blocks, *text.of_wholes, *text.of_windows]
    function = returning(label, name, params, [*lines, *inner.statements], [], rows)
    call = Kernel(
        name,
        blocks.size,
        -(-blocks.extent // blocks.size),
        tuple(text.of_blocks.values()),
        tuple(text.of_wholes.values()),
        tuple(text.of_windows.values()),
        tuple((row.shape, row.dtype) for row in rows),
        writer.shared.policy.facts.kernels,
    )
    made = Statement(label, ", ".join(targets.values()), call)
    return Written(
        [*text.statements, function, made, *text.shaped(targets)], targets, choices_of(tiles, inner.choices)
    )


class _KernelText(Text):
    """A kernel under way: ``of_blocks``, ``of_wholes`` and ``of_windows`` are what it is given, by the names of its parameters."""

    def __init__(self, tiles: Tiles, known: dict[Tensor, str], writer: Writer, scope: str) -> None:
        super().__init__(tiles, known, writer, scope)
        self.of_blocks: dict[str, Name] = {}
        self.of_wholes: dict[str, Name] = {}
        self.of_windows: dict[str, Name] = {}

    def handed(self, targets: Mapping[Tensor, str]) -> list[AnyStatement]:
        """The statements that name what the tile is handed, or loads."""
        names, blocks = self.writer.shared.names, self.blocks
        outside = {t: self.known[t] for t in blocks.wholes}
        lines = self._first()
        for piece in blocks.slices.values():
            source, before = self._source(piece)
            name = names.new(piece.part.name)
            self.known[piece.part] = name
            if not piece.windows:
                self.of_wholes[name] = source
            elif self._is_block(piece, source, before):
                self.of_blocks[name] = source
            else:
                lines.append(Statement(self.scope, name, self._loaded(source, piece, before)))
        for tensor, identifier in outside.items():
            name = self.known[tensor] = names.numbered(identifier)
            self.of_wholes[name] = tensor_name(identifier, tensor)
        return lines

    def _is_block(self, piece: Slice, source: Name, before: Mapping[int, int]) -> bool:
        """Whether ``piece`` is the block of its source along the first dimension, and nothing else is taken of that."""
        if len(piece.windows) != 1 or self.blocks.extent % self.blocks.size:
            return False
        (window,) = piece.windows
        place = window.dim, window.step, window.offset + before.get(0, 0), window.length
        return place == (0, 1, 0, self.blocks.size) and source.shape[0] is as_expr(self.blocks.extent)

    def _loaded(self, source: Name, piece: Slice, before: Mapping[int, int]) -> Loaded:
        name = self.writer.shared.names.new(f"{source.identifier}_ref")
        self.of_windows[name] = source
        starts = {w.dim: begin(w, before.get(w.dim, 0), self.start) for w in piece.windows}
        sizes = tuple(int(e) for e in piece.part.shape)  # type: ignore[arg-type]
        reference = Name(name, source.shape, source.kind)
        return Loaded(reference, tuple(starts.get(n) for n in range(len(sizes))), sizes)


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
        for node in reductions(tensor.body):
            if not is_contraction(node):
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
            for n in reductions(tensor.body)
            if not is_contraction(n)
            for a in n.axes
            if points([a]) <= MOST_TERMS
        ]
        if short or overlaps(tensor):
            return (
                f"{tensor.name} is summed position by position, and Triton takes no slices of what is loaded"
            )
    return ""

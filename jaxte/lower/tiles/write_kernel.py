"""Tiles as one Pallas kernel: the same function of a tile, which is handed blocks and loads the windows that it needs."""

from __future__ import annotations

from collections.abc import Mapping

from jaxte.lang.expr import as_expr
from jaxte.lower.arrays.data import Kernel, Loaded
from jaxte.lower.arrays.elementwise import Name
from jaxte.lower.code.vocabulary import AnyStatement, Statement
from jaxte.lower.tiles.slices import Slice
from jaxte.lower.tiles.tiling import Tiles
from jaxte.lower.tiles.write import Text, Writer, Written, begin, choices_of, returning, tensor_name
from jaxte.tensors.tensor import Tensor


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

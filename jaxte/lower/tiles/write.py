"""Tiles: a function of one tile, and ``lax.map`` or ``lax.scan`` of it over where the tiles begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Axis, as_expr
from jaxte.lang.operators import MINIMUM
from jaxte.lower.arrays.data import DynamicSlice, DynamicUpdate
from jaxte.lower.arrays.elementwise import Apply, Arange, Name, Number
from jaxte.lower.arrays.loops import Carried, Joined, MapOver, Tuple
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import ALL, Entry, Index, Pad, Range, Reshape, Transpose, View
from jaxte.lower.body.assignment import Assignment, Shared
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.choice import Choice
from jaxte.lower.code.spec import Array
from jaxte.lower.code.vocabulary import AnyStatement, Function, Statement, Value, tensor_name
from jaxte.lower.tiles.carried_sums import Update, carried
from jaxte.lower.tiles.slices import Slice, Window, begin
from jaxte.lower.tiles.tiling import Tiles, Tiling, choices_of
from jaxte.lower.views.scope import Scope
from jaxte.tensors.tensor import Compute, Tensor

Lower = Callable[[Assignment, Shared, Compute], Body]


@dataclass(frozen=True)
class Written:
    """Part of a program.

    Attributes:
        statements: what computes its tensors.
        names: of these tensors.
        choices: what became of them.
    """

    statements: list[AnyStatement]
    names: dict[Tensor, str]
    choices: list[Choice]


@dataclass(frozen=True)
class Writer:
    """What is needed to write tiles.

    Attributes:
        shared: names, printer, policy and rules of the function.
        lower: lowers a tensor.
        program: the statements of all that a tile computes, given the names of what exists, and a label.
    """

    shared: Shared
    lower: Lower
    program: Callable[[Tiling, Mapping[Tensor, str], str], Written]


def tile_statements(tiles: Tiles, idents: Mapping[Tensor, str], writer: Writer, scope: str = "") -> Written:
    """The statements of one pass.

    Args:
        tiles: the pass.
        idents: names of the tensors that exist before it.
        writer: writes what the pass consists of.
        scope: the named scope that it is part of; by default its own.
    """
    names = writer.shared.names
    targets: dict[Tensor, str] = {whole: names.new(whole.name) for whole in tiles.wholes}
    label = next(iter(targets.values()))
    scope = scope or label
    text = Text(tiles, dict(idents), writer, scope)
    name = names.new(f"{label}_tile")
    lines = text.handed(targets)
    inner = writer.program(tiles.inner, text.known, scope)
    lines += inner.statements
    rows = [tensor_name(inner.names[own], own) for own in (tiles.blocks.tensors[m] for m in tiles.members)]
    new = [text.updated(u, tensor_name(inner.names[u.new], u.new)) for u in tiles.updates]
    function = returning(scope, name, text.parameters, lines, new, rows)
    statements = [*text.statements, function, text.loop(function, rows, targets), *text.shaped(targets)]
    return Written(statements, targets, choices_of(tiles, inner.choices))


class Text:
    """A pass under way.

    Attributes:
        known: names of tensors, outside and in the tile.
        statements: what comes before the loop.
        parameters: of the function of one tile.
    """

    def __init__(self, tiles: Tiles, known: dict[Tensor, str], writer: Writer, scope: str) -> None:
        self.tiles = tiles
        self.blocks = tiles.blocks
        self.known = known
        self.writer = writer
        self.scope = scope
        self.statements: list[AnyStatement] = []
        self.parameters: list[str] = []
        self.start = Name("start")
        self.so_far: dict[Tensor, str] = {}

    # --- the beginning of a tile

    def handed(self, targets: Mapping[Tensor, str]) -> list[AnyStatement]:
        """The statements that name what the tile is handed."""
        names, blocks = self.writer.shared.names, self.blocks
        for update in self.tiles.updates:
            self.so_far[update.whole] = names.new(f"{targets[update.whole]}_so_far")
        carry = list(self.so_far.values())
        self.parameters = carry if len(carry) < 2 else [names.new("so_far")]
        lines: list[AnyStatement] = []
        if len(carry) > 1:
            lines.append(Statement(self.scope, ", ".join(carry), Name(self.parameters[0])))
        lines += self._first()
        for piece in blocks.slices.values():
            source, before = self._source(piece)
            if not piece.windows:
                self.known[piece.part] = source.identifier
                continue
            name = names.new(piece.part.name)
            lines.append(Statement(self.scope, name, self._sliced(source, piece.windows, piece.part, before)))
            self.known[piece.part] = name
        for update in self.tiles.updates:
            name = self.so_far[update.whole]
            if update.slab is not None:
                taken = self._sliced(self._carried(update), (update.slab,), update.old, {})
                name = names.new(f"{targets[update.whole]}_there")
                lines.append(Statement(self.scope, name, taken))
            self.known[update.old] = name
        return lines

    def _first(self) -> list[AnyStatement]:
        """The statement that keeps the last tile within the axis, if it has to, after which it is known where a tile starts."""
        names, blocks = self.writer.shared.names, self.blocks
        start = first = names.new("start")
        self.start = Name(start, (), ("int32", False))
        lines: list[AnyStatement] = []
        if blocks.extent % blocks.size:
            first = names.new("first")
            own = Name(first, (), ("int32", False)), Number(blocks.extent - blocks.size)
            lines.append(Statement(self.scope, start, Apply(MINIMUM, own)))
        self.parameters.append(first)
        self.known |= {blocks.start: start, blocks.first: first}
        return lines

    def _carried(self, update: Update) -> Name:
        """What is carried on so far."""
        return tensor_name(self.so_far[update.whole], carried(update))

    def _source(self, piece: Slice) -> tuple[Name, dict[int, int]]:
        """The array that a part is a slice of, with zeros in front of some dimensions so that no slice leaves it."""
        source = piece.source
        if isinstance(source, Tensor):
            label = self.known[source]
        else:
            label = self.writer.shared.names.new(
                f"{piece.part.name}_all" if piece.windows else piece.part.name
            )
            self._prepare(source, label)
        own = Name(label, tuple(as_expr(e) for e in source.shape), (source.dtype, False))
        before, widths = {}, [(0, 0)] * len(own.shape)
        for window in piece.windows:
            ends = (window.offset, window.step * (self.blocks.extent - self.blocks.size) + window.offset)
            low, high = max(0, -min(ends)), max(0, max(ends) + window.length - int(own.shape[window.dim]))
            before[window.dim], widths[window.dim] = low, (low, high)
        if any(w != (0, 0) for w in widths):
            padded = View(own, Pad(tuple((as_expr(a), as_expr(b)) for a, b in widths)))
            name = self.writer.shared.names.new(f"{label}_padded")
            self.statements.append(Statement(self.scope, name, padded))
            own = Name(name, padded.shape, padded.kind)
        return own, before

    def _sliced(
        self, source: Name, windows: Sequence[Window], part: Tensor, before: Mapping[int, int]
    ) -> Node:
        starts = {w.dim: begin(w, before.get(w.dim, 0), self.start) for w in windows}
        sizes = tuple(int(e) for e in part.shape)  # type: ignore[arg-type]
        own = tuple(starts.get(n) for n in range(len(sizes)))
        return DynamicSlice(source, own, sizes, self.reads_starts)

    def _prepare(self, array: Array, label: str) -> None:
        body = Body(Assignment(self.scope, label, label, self.known), self.writer.shared)
        axes: tuple[Axis, ...] = array.axes
        value = body.cast(body.evaluate(array.body, Scope(axes)), array.dtype)
        code = body.full(Value(value.code, value.dims, value.kind, value.literal), axes)
        self.statements += [*body.statements, Statement(self.scope, label, code)]

    # --- the end of it

    def updated(self, update: Update, new: Name) -> Node:
        """What is carried on to the next tile."""
        if update.slab is None:
            return new
        at = begin(update.slab, 0, self.start)
        return DynamicUpdate(self._carried(update), new, at, update.slab.dim)

    # --- the loop

    @property
    def reads_starts(self) -> bool:
        """Whether elements are computed from where a tile starts, which is an int32 then, also where JAX has 64 bits."""
        read = {t for row in self.blocks.computed for t in row.inputs}
        read |= {t for u in self.tiles.updates for t in u.new.inputs}
        return self.blocks.start in read or self.blocks.first in read

    def loop(self, function: Function, rows: Sequence[Name], targets: Mapping[Tensor, str]) -> Statement:
        blocks, tiles = self.blocks, self.tiles
        dtype = "int32" if self.reads_starts else ""
        starts = Arange(0, as_expr(blocks.extent), blocks.size, dtype)
        made = ", ".join(targets[member] for member, _ in tiles.members)
        if not tiles.updates:
            shape = (*starts.shape, *rows[0].shape)
            return Statement(self.scope, made, MapOver(function.name, starts, shape, rows[0].kind))
        carry = [targets[u.whole] for u in tiles.updates]
        begin = tuple(self._begun(u) for u in tiles.updates)
        on = carry[0] if len(carry) == 1 else f"({', '.join(carry)})"
        made = f"({made})" if len(tiles.members) > 1 else made or "_"
        return Statement(
            self.scope, f"{on}, {made}", Carried(function.name, begin, starts, unroll=tiles.together)
        )

    def _begun(self, update: Update) -> Node:
        """The carried tensor before the first tile."""
        constant = carried(update)
        own = Assignment(self.scope, self.scope, constant.name, self.known)
        last = self.writer.lower(own, self.writer.shared, constant).statements[-1]
        assert isinstance(last, Statement)
        return last.source

    def shaped(self, targets: Mapping[Tensor, str]) -> list[AnyStatement]:
        """The statements that give what the loop returns its shape."""
        blocks = self.blocks
        count = -(-blocks.extent // blocks.size)
        found: list[AnyStatement] = []
        for member, position in self.tiles.members:
            shape = [int(a.hi) for a in member.axes]
            block = [*shape[:position], blocks.size, *shape[position + 1 :]]
            own = Name(targets[member], tuple(map(as_expr, (count, *block))), (member.dtype, False))
            rest = blocks.extent % blocks.size
            shape[position] -= rest
            whole = View(own, Index((Range(None, as_expr(-1)),))) if rest else own
            result = _joined(whole, position, shape)
            if rest:
                entries: tuple[Entry, ...] = (as_expr(-1), *(ALL,) * position, Range(as_expr(-rest)))
                result = Joined((result, View(own, Index(entries))), position)
            found.append(Statement(self.scope, targets[member], result))
        for update in self.tiles.updates:
            if update.slab is None:
                continue
            extent = int(update.whole.axes[update.slab.dim].hi)
            if (update.before, update.total) != (0, extent):
                own = tensor_name(targets[update.whole], carried(update))
                first = as_expr(update.before) if update.before else None
                entry = Range(first, as_expr(update.before + extent))
                taken = View(own, Index((*(ALL,) * update.slab.dim, entry)))
                found.append(Statement(self.scope, targets[update.whole], taken))
        return found


def _joined(blocks: Node, position: int, shape: Sequence[int]) -> Node:
    """Blocks, one after the other along a dimension of their own in front, as one array."""
    order = [*range(1, position + 1), 0, *range(position + 1, len(shape) + 1)]
    moved = apply_steps(blocks, [Transpose(tuple(order))] if position else [])
    return View(moved, Reshape(tuple(map(as_expr, shape))))


def returning(
    scope: str,
    name: str,
    params: Sequence[str],
    statements: list[AnyStatement],
    carry: Sequence[Node],
    rows: Sequence[Name],
) -> Function:
    """The function of a tile, which returns what is carried on, if anything is, and the blocks."""
    result: Node = rows[0] if len(rows) == 1 else Tuple(tuple(rows)) if rows else Name("None")
    last = statements[-1] if statements else None
    if carry:
        result = Tuple((carry[0] if len(carry) == 1 else Tuple(tuple(carry)), result))
    elif len(rows) == 1 and isinstance(last, Statement) and last.target == rows[0].identifier:
        statements, result = statements[:-1], last.source
    return Function(scope, name, tuple(params), tuple(statements), result)

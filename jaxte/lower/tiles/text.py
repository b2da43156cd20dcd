"""The text of tiles: a function of one tile, and ``lax.map`` or ``lax.scan`` of it over where the tiles begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxte.lang.expr import Axis
from jaxte.lower.arrays.leaves import Text
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.identifiers import Names
from jaxte.lower.code.lines import lines_of
from jaxte.lower.code.spec import Array
from jaxte.lower.code.vocabulary import AnyStatement, Choice, Statement, Value
from jaxte.lower.printing.numbers import tuple_text
from jaxte.lower.printing.printer import Printer
from jaxte.lower.tiles.blocks import Slice, Window
from jaxte.lower.tiles.carried_sums import Update, carried
from jaxte.lower.tiles.tiling import Tiles, Tiling
from jaxte.lower.views.scope import Scope
from jaxte.tensors.tensor import Compute, Tensor

MakeBody = Callable[[str, str, str, Mapping[Tensor, str]], Body]
Lower = Callable[[Body, Compute], list[AnyStatement]]


@dataclass(frozen=True)
class Written:
    """Part of a program as text.

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
        names: gives new ones.
        printer: writes nodes.
        make_body: makes a body for (label, target, name of the tensor, names of tensors).
        lower: the statements that compute a tensor.
        program: the statements of all that a tile computes, given the names of what exists, and a label.
    """

    names: Names
    printer: Printer
    make_body: MakeBody
    lower: Lower
    program: Callable[[Tiling, Mapping[Tensor, str], str], Written]


def tile_statements(tiles: Tiles, idents: Mapping[Tensor, str], writer: Writer, scope: str = "") -> Written:
    """The text of one pass.

    Args:
        tiles: the pass.
        idents: names of the tensors that exist before it.
        writer: writes what the pass consists of.
        scope: the named scope that it is part of; by default its own.
    """
    names = writer.names
    targets: dict[Tensor, str] = {whole: names.new(whole.name) for whole in tiles.wholes}
    label = next(iter(targets.values()))
    scope = scope or label
    text = _Text(tiles, dict(idents), writer, scope)
    function = names.new(f"{label}_tile")
    lines = text.handed(targets)
    inner = writer.program(tiles.inner, text.known, scope)
    lines += [line for s in inner.statements for line in lines_of(s, writer.printer)]
    rows = [inner.names[tiles.blocks.tensors[m]] for m in tiles.members]
    new = [text.updated(u, inner.names[u.new]) for u in tiles.updates]
    lines = _returning(lines, new, rows)
    statements = text.statements
    statements.append(Statement(scope, f"{function}({', '.join(text.parameters)})", None, tuple(lines)))
    statements.append(text.loop(function, targets))
    statements += text.shaped(targets)
    return Written(statements, targets, _choices(tiles, inner.choices))


class _Text:
    """The text of a pass under way.

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
        self.start = ""
        self.so_far: dict[Tensor, str] = {}

    # --- the beginning of a tile

    def handed(self, targets: Mapping[Tensor, str]) -> list[str]:
        """The lines that name what the tile is handed."""
        names, blocks = self.writer.names, self.blocks
        for update in self.tiles.updates:
            self.so_far[update.whole] = names.new(f"{targets[update.whole]}_so_far")
        carry = list(self.so_far.values())
        self.parameters = carry if len(carry) < 2 else [names.new("so_far")]
        lines = [] if len(carry) < 2 else [f"{', '.join(carry)} = {self.parameters[0]}"]
        self.start = names.new("start")
        first = self.start
        if blocks.extent % blocks.size:
            first = names.new("first")
            lines.append(f"{self.start} = jnp.minimum({first}, {blocks.extent - blocks.size})")
        self.parameters.append(first)
        self.known |= {blocks.start: self.start, blocks.first: first}
        zero = (
            "jnp.int32(0)" if self.reads_starts else "0"
        )  # the dtype of all places where a slice begins is one
        for piece in blocks.slices.values():
            source, before = self._source(piece)
            if not piece.windows:
                self.known[piece.part] = source
                continue
            name = names.new(piece.part.name)
            lines.append(
                f"{name} = {_sliced(source, piece.windows, piece.part.shape, before, self.start, zero)}"
            )
            self.known[piece.part] = name
        for update in self.tiles.updates:
            name = self.so_far[update.whole]
            if update.slab is not None:
                taken = _sliced(name, (update.slab,), update.old.shape, {}, self.start, zero)
                name = names.new(f"{targets[update.whole]}_there")
                lines.append(f"{name} = {taken}")
            self.known[update.old] = name
        return lines

    def _source(self, piece: Slice) -> tuple[str, dict[int, int]]:
        """The array that a part is a slice of, with zeros in front of some dimensions so that no slice leaves it."""
        source = piece.source
        if isinstance(source, Tensor):
            name, label = self.known[source], self.known[source]
        else:
            label = self.writer.names.new(f"{piece.part.name}_all" if piece.windows else piece.part.name)
            name = self._prepared(source, label)
        shape = source.shape
        before, widths = {}, [(0, 0)] * len(shape)
        for window in piece.windows:
            ends = (window.offset, window.step * (self.blocks.extent - self.blocks.size) + window.offset)
            low, high = max(0, -min(ends)), max(0, max(ends) + window.length - int(shape[window.dim]))
            before[window.dim], widths[window.dim] = low, (low, high)
        if any(w != (0, 0) for w in widths):
            padded = self.writer.names.new(f"{label}_padded")
            self.statements.append(
                Statement(
                    self.scope, padded, Text(f"jnp.pad({name}, {tuple_text([str(w) for w in widths])})")
                )
            )
            name = padded
        return name, before

    def _prepared(self, array: Array, label: str) -> str:
        body = self.writer.make_body(self.scope, label, label, self.known)
        axes: tuple[Axis, ...] = array.axes
        value = body.cast(body.evaluate(array.body, Scope(axes)), array.dtype)
        code = body.full(Value(value.code, value.dims, value.kind, value.literal), axes)
        self.statements += [*body.statements, Statement(self.scope, label, code)]
        return label

    # --- the end of it

    def updated(self, update: Update, name: str) -> str:
        """What is carried on to the next tile."""
        if update.slab is None:
            return name
        at = _begin(update.slab, 0, self.start)
        axis = f", axis={update.slab.dim}"
        return f"lax.dynamic_update_slice_in_dim({self.so_far[update.whole]}, {name}, {at}{axis})"

    # --- the loop

    @property
    def reads_starts(self) -> bool:
        """Whether elements are computed from where a tile starts, which is an int32 then, also where JAX has 64 bits."""
        read = {t for row in self.blocks.computed for t in row.inputs}
        read |= {t for u in self.tiles.updates for t in u.new.inputs}
        return self.blocks.start in read or self.blocks.first in read

    def loop(self, function: str, targets: Mapping[Tensor, str]) -> Statement:
        blocks, tiles = self.blocks, self.tiles
        typed = ", dtype=jnp.int32" if self.reads_starts else ""
        starts = f"jnp.arange(0, {blocks.extent}, {blocks.size}{typed})"
        rows = ", ".join(targets[member] for member, _ in tiles.members)
        if not tiles.updates:
            return Statement(self.scope, rows, Text(f"lax.map({function}, {starts})"))
        carry = [targets[u.whole] for u in tiles.updates]
        begin = [self._begun(u) for u in tiles.updates]
        written = (carry[0], begin[0]) if len(carry) == 1 else (f"({', '.join(carry)})", tuple_text(begin))
        made = f"({rows})" if len(tiles.members) > 1 else rows or "_"
        return Statement(
            self.scope, f"{written[0]}, {made}", Text(f"lax.scan({function}, {written[1]}, {starts})")
        )

    def _begun(self, update: Update) -> str:
        """The carried tensor before the first tile."""
        constant = carried(update)
        body = self.writer.make_body(self.scope, self.scope, constant.name, self.known)
        last = self.writer.lower(body, constant)[-1]
        assert isinstance(last, Statement) and last.source is not None
        return self.writer.printer.text(last.source)

    def shaped(self, targets: Mapping[Tensor, str]) -> list[AnyStatement]:
        """The statements that give what the loop returns its shape."""
        blocks = self.blocks
        found: list[AnyStatement] = []
        for member, position in self.tiles.members:
            target, shape = targets[member], [int(a.hi) for a in member.axes]
            text, rest = target, blocks.extent % blocks.size
            if rest:
                shape[position] -= rest
                text = f"{target}[:-1]"
            text = _joined(text, position, shape)
            if rest:
                entries = ", ".join(["-1", *[":"] * position, f"-{rest}:"])
                axis = f", axis={position}" if position else ""
                text = f"jnp.concatenate([{text}, {target}[{entries}]]{axis})"
            found.append(Statement(self.scope, target, Text(text)))
        for update in self.tiles.updates:
            extent = int(update.whole.axes[update.slab.dim].hi) if update.slab is not None else 0
            if update.slab is not None and (update.before, update.total) != (0, extent):
                entry = f"{update.before or ''}:{update.before + extent}"
                entries = ", ".join([*[":"] * update.slab.dim, entry])
                target = targets[update.whole]
                found.append(Statement(self.scope, target, Text(f"{target}[{entries}]")))
        return found


def _joined(text: str, position: int, shape: Sequence[int]) -> str:
    """Blocks, one after the other along a dimension of their own in front, as one array."""
    moved = f"jnp.moveaxis({text}, 0, {position})" if position else text
    return f"{moved}.reshape({', '.join(map(str, shape))})"


def _begin(window: Window, before: int, start: str) -> str:
    """Where a slice begins."""
    offset = window.offset + before
    if window.step < 0:
        return f"{offset} - {start}" if window.step == -1 else f"{offset} - {-window.step} * {start}"
    moving = start if window.step == 1 else f"{window.step} * {start}"
    return moving if not offset else f"{moving} {'+' if offset > 0 else '-'} {abs(offset)}"


def _sliced(
    source: str,
    windows: Sequence[Window],
    shape: Sequence[object],
    before: Mapping[int, int],
    start: str,
    zero: str,
) -> str:
    if len(windows) == 1:
        (window,) = windows
        axis = f", axis={window.dim}" if window.dim else ""
        at = _begin(window, before.get(window.dim, 0), start)
        return f"lax.dynamic_slice_in_dim({source}, {at}, {window.length}{axis})"
    begins = {w.dim: _begin(w, before.get(w.dim, 0), start) for w in windows}
    at = tuple_text([begins.get(n, zero) for n in range(len(shape))])
    return f"lax.dynamic_slice({source}, {at}, {tuple_text([str(e) for e in shape])})"


def _returning(lines: list[str], carry: Sequence[str], rows: Sequence[str]) -> list[str]:
    """``lines`` with a return of what is carried on, if anything is, and of the blocks."""
    if not carry:
        if len(rows) == 1 and lines[-1].startswith(f"{rows[0]} = "):
            return [*lines[:-1], f"return {lines[-1].removeprefix(f'{rows[0]} = ')}"]
        return [*lines, f"return {', '.join(rows)}"]
    on = carry[0] if len(carry) == 1 else f"({', '.join(carry)})"
    made = f"({', '.join(rows)})" if len(rows) > 1 else rows[0] if rows else "None"
    return [*lines, f"return {on}, {made}"]


def choice_of(tensor: str, body: Body) -> Choice:
    """What became of a tensor, as its body noted it."""
    form = " + ".join(body.forms) or "elementwise"
    return Choice(
        tensor, form, tuple(body.refused), body.reason, tuple(body.estimates), rewrites=tuple(body.rewrites)
    )


def _choices(tiles: Tiles, inner: Sequence[Choice]) -> list[Choice]:
    """What became of the tensors that the pass makes, and of those that exist in its tiles only."""
    blocks = tiles.blocks
    made = [(m, blocks.tensors[m, position]) for m, position in tiles.members]
    made += [(u.whole, u.new) for u in tiles.updates]
    shown = " and ".join(dict.fromkeys(whole.name for whole, _ in made))
    by_name = {c.tensor: c for c in inner}
    found = [Choice(t.name, f"inside the tiles of {shown}") for t in tiles.inside]
    for whole, own in made:
        below = by_name[own.name]
        form = f"tiles of {blocks.size} {tiles.axis}: {below.form}"
        found.append(Choice(whole.name, form, below.refused, below.reason, below.estimates))
    return found

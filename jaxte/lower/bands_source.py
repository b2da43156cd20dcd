"""The text of banded products: blocks of rows against the columns that they meet, and the skew between them.

In a block of ``B`` rows, row ``i`` meets the columns ``i, ..., i + W - 1`` of ``L``. Entry ``(i, i + z)`` of the dense ``B x L`` matrix
stands at ``i L + i + z = i (L + 1) + z`` of its elements in a row: padded by ``B`` elements and read as ``B`` rows of length
``L + 1``, the parallelogram is the first ``W`` columns. The other way round, a rectangle padded to rows of length ``L + 1`` and read
as rows of length ``L`` is a parallelogram among zeros. Where windows move by a stride ``g``, it is ``L + g`` in place of ``L + 1``, and a
block of ``B`` rows has blocks of ``g B`` columns.

The columns of block ``n`` are those of the blocks ``n, ..., n + L / B - 1``, laid side by side; sums over rows go back the same way,
each part added at its block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxte.expr import Axis
from jaxte.lower.bands import SCORES, TRANSPOSED, BandSpec, Dims
from jaxte.lower.shaped import Shaped, letters_of
from jaxte.lower.specs import as_atom, as_factor, tuple_text

Assign = Callable[[str], str]
_LARGEST, _SMALLEST = 64, 16


@dataclass(frozen=True, slots=True)
class Blocks:
    """``count`` blocks of ``size`` rows (for each of ``step`` remainders), each with ``spans`` blocks of ``across`` columns."""

    size: int
    count: int
    spans: int
    step: int
    across: int

    @property
    def width(self) -> int:
        """L, the columns of a block."""
        return self.across * self.spans

    @property
    def rows(self) -> int:
        return self.size * self.count * self.step

    @property
    def columns(self) -> int:
        return self.across * (self.count + self.spans - 1) * self.step


def blocks_of(spec: BandSpec) -> Blocks:
    """Blocks about as long as the window, so that at least a third of each product is band."""
    rows = -(-spec.rows // spec.step)
    size = _SMALLEST
    while size < min(_LARGEST, (spec.window - 1) // spec.stride, rows):
        size *= 2
    size = min(size, rows)
    across = spec.stride * size
    spans = -(-max(0, spec.window - spec.stride) // across) + 1
    return Blocks(size, -(-rows // size), spans, spec.step, across)


class _Writer:
    def __init__(self, spec: BandSpec, assign: Assign) -> None:
        self.spec = spec
        self.blocks = blocks_of(spec)
        self.assign = assign
        axes = [r for r in (*spec.out, *spec.first.roles, *spec.second.roles) if isinstance(r, Axis)]
        self.letters = letters_of(list(dict.fromkeys(axes)), "nijwms")
        self.extent = {
            self.letters[a]: int(a.extent)
            for d in (spec.first, spec.second)
            for a in d.array.axes
            if a in self.letters
        }
        self.remainder = "s" if spec.step > 1 else ""
        self.steps = (spec.step,) if spec.step > 1 else ()

    def named(self, shaped: Shaped) -> Shaped:
        return Shaped(self.assign(shaped.text), shaped.letters, shaped.extents)

    def operand(self, dims: Dims, text: str) -> Shaped:
        letters = self.roles(dims.roles)
        return Shaped(text, letters, tuple(int(a.hi) for a in dims.array.axes))

    def roles(self, roles: Sequence[str | Axis]) -> str:
        """One letter for each role: rows i, columns j, diagonals w."""
        own = {"row": "i", "column": "j", "diagonal": "w"}
        return "".join(own[r] if isinstance(r, str) else self.letters[r] for r in roles)

    # --- into blocks

    def in_rows(self, x: Shaped) -> Shaped:
        """Rows as blocks of rows."""
        at, b = x.letters.index("i"), self.blocks
        x = x.padded(at, 0, b.rows - x.extents[at])
        return x.reshaped(at, 1, f"ni{self.remainder}", (b.count, b.size, *self.steps))

    def in_columns(self, y: Shaped) -> Shaped:
        """Columns as those of each block of rows, side by side."""
        at, b = y.letters.index("j"), self.blocks
        y = y.padded(at, self.spec.before, b.columns - self.spec.before - y.extents[at])
        y = y.reshaped(at, 1, f"nj{self.remainder}", (b.count + b.spans - 1, b.across, *self.steps))
        if b.spans == 1:
            return y
        y = self.named(y)
        parts = [y.sliced(at, m, m + b.count).text for m in range(b.spans)]
        written = ", ".join(parts)
        if b.spans > 3:
            moving = ", ".join([*[":"] * at, f"m:m + {b.count}"])
            written = f"{y.text}[{moving}] for m in range({b.spans})"
        extents = (*y.extents[:at], b.count, b.width, *y.extents[at + 2 :])
        return Shaped(f"jnp.concatenate([{written}], axis={at + 1})", y.letters, extents)

    def skewed(self, p: Shaped) -> Shaped:
        """Diagonals as columns: rows of W elements as a parallelogram among zeros."""
        b, others = self.blocks, len(p.letters) - 2
        if self.spec.flip:
            p = p.reversed(others + 1)
        p = self.in_rows(p)
        p = p.arranged(f"{p.letters[:others]}n{self.remainder}iw")
        last, wide = len(p.letters) - 1, b.width + self.spec.stride
        p = p.spread(last, 0, wide - self.spec.window, self.spec.gap, self.spec.first.array.dtype)
        p = p.reshaped(last - 1, 2, "i", (b.size * wide,)).sliced(last - 1, 0, b.size * b.width)
        return p.reshaped(last - 1, 1, "ij", (b.size, b.width))

    # --- and back

    def straight(self, p: Shaped) -> Shaped:
        """Columns as diagonals: the parallelogram of each block as rows of W elements."""
        b, at = self.blocks, len(p.letters) - 2
        wide = b.width + self.spec.stride
        p = p.reshaped(at, 2, "i", (b.size * b.width,)).padded(at, 0, b.size * self.spec.stride)
        window = (self.spec.window - 1) // self.spec.gap + 1
        p = p.reshaped(at, 1, "iw", (b.size, wide)).every(at + 1, 0, self.spec.gap, window)
        if self.remainder:
            p = p.arranged(p.letters.replace("si", "is"))
        p = self.out_rows(p)
        return p.reversed(p.letters.index("w")) if self.spec.flip else p

    def out_rows(self, x: Shaped) -> Shaped:
        at, b = x.letters.index("n"), self.blocks
        return x.reshaped(at, 2 + len(self.steps), "i", (b.rows,)).sliced(at, 0, self.spec.rows)

    def out_columns(self, y: Shaped) -> Shaped:
        """The columns of all blocks, added where they overlap."""
        at, b, spec = y.letters.index("n"), self.blocks, self.spec
        if b.spans > 1:
            y = self.named(y.reshaped(at + 1, 1, "mj", (b.spans, b.across)))
            here = ", ".join([*[":"] * (at + 1), "m"])
            widths = ["(0, 0)"] * (len(y.extents) - 1)
            widths[at] = f"(m, {b.spans - 1} - m)"
            total = f"sum(jnp.pad({y.text}[{here}], {tuple_text(widths)}) for m in range({b.spans}))"
            extents = (*y.extents[:at], b.count + b.spans - 1, *y.extents[at + 2 :])
            y = Shaped(total, y.letters.replace("m", ""), extents)
        y = y.reshaped(at, 2 + len(self.steps), "j", (b.columns,))
        return y.padded(at, -spec.before, spec.columns + spec.before - b.columns)

    def einsum(self, first: Shaped, second: Shaped, out: str) -> Shaped:
        known = dict(zip(first.letters + second.letters, first.extents + second.extents, strict=True))
        text = f'jnp.einsum("{first.letters},{second.letters}->{out}", {first.text}, {second.text})'
        return self.named(Shaped(text, out, tuple(known[letter] for letter in out)))


def band_source(spec: BandSpec, operands: Sequence[str], assign: Assign) -> str:
    """The expression of ``spec`` on the texts of ``spec.operands``; ``assign`` gives an expression a name."""
    w = _Writer(spec, assign)
    first, second = w.operand(spec.first, operands[0]), w.operand(spec.second, operands[1])
    out = w.roles(spec.out)
    s = w.remainder
    if spec.kind == SCORES:
        others = "".join(letter for letter in out if letter not in "iw")
        dense = w.einsum(w.in_rows(first), w.named(w.in_columns(second)), f"{others}n{s}ij")
        result = w.straight(dense).arranged(out)
    elif spec.kind == TRANSPOSED:
        dense = w.einsum(w.named(w.skewed(first)), w.in_rows(second), out.replace("j", f"nj{s}"))
        result = w.out_columns(dense)
    else:
        inner = w.named(w.skewed(first)), w.named(w.in_columns(second))
        result = w.out_rows(w.einsum(*inner, out.replace("i", f"ni{s}")))
    return result.text if spec.scale is None else f"{as_factor(operands[2])} * {as_atom(result.text)}"

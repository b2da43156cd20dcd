"""Banded products as nodes: blocks of rows against the columns that they meet, and the skew between them.

In a block of ``B`` rows, row ``i`` meets the columns ``i, ..., i + W - 1`` of ``L``. Entry ``(i, i + z)`` of the dense ``B x L`` matrix
stands at ``i L + i + z = i (L + 1) + z`` of its elements in a row: padded by ``B`` elements and read as ``B`` rows of length
``L + 1``, the parallelogram is the first ``W`` columns. The other way round, a rectangle padded to rows of length ``L + 1`` and read
as rows of length ``L`` is a parallelogram among zeros. Where windows move by a stride ``g``, it is ``L + g`` in place of ``L + 1``, and a
block of ``B`` rows has blocks of ``g B`` columns.

The columns of block ``n`` are those of the blocks ``n, ..., n + L / B - 1``, laid side by side; sums over rows go back the same way,
each part added at its block.

Where there are not many more rows than fit into a block, all of them are one: it meets all columns, none of which is copied.

Where there are several bands, one of them is skewed. In the others the product is made for each diagonal, with a slice of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_letters, ascii_uppercase

from jaxte.lang.expr import Axis, Expr, as_expr
from jaxte.lang.limits import BLOCK, MARGIN, NARROW
from jaxte.lower.arrays.loops import Each, Joined, Stacked, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.views import Pad
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import NO_WIDTH, Shaped, einsum, letters_of
from jaxte.lower.forms.band.spec import (
    COLUMN,
    DIAGONAL,
    ROW,
    SCORES,
    TRANSPOSED,
    Band,
    BandSpec,
    Dims,
    Part,
    added_remainders,
    by_remainders,
    columns_in_all,
)

Assign = Callable[[Node], Node]
_RESERVED = "nijwms"  # blocks, rows, columns, diagonals, spans and remainders of the band that is skewed
_SPARE = "rzyxtuv" + ascii_letters
_LOOPS = "pqrstuvz" + ascii_uppercase


@dataclass(frozen=True, slots=True)
class Blocks:
    """``count`` blocks of ``size`` rows, each with ``spans`` blocks of ``across`` columns, for each of ``step`` remainders.

    Windows move by ``stride`` columns a row.
    """

    size: int
    count: int
    spans: int
    across: int
    stride: int
    step: int

    @property
    def width(self) -> int:
        """L, the columns of a block."""
        return self.across * self.spans

    @property
    def entries(self) -> int:
        """The elements of all blocks."""
        return self.count * self.size * self.width * self.step

    @property
    def rows(self) -> int:
        return self.size * self.count * self.step

    @property
    def columns(self) -> int:
        return columns_in_all(self.across * (self.count + self.spans - 1), self.stride, self.step)


def blocks_of(band: Band) -> Blocks:
    """Blocks about as long as the window, so that at least a third of each product is band; a single one if that is not much more."""
    rows = -(-band.rows // band.remainders)
    single = Blocks(rows, 1, 1, band.stride * (rows - 1) + band.window, band.stride, band.remainders)
    size = NARROW
    while size < min(BLOCK, (band.window - 1) // band.stride, rows):
        size *= 2
    size = min(size, rows)
    across = band.stride * size
    spans = -(-max(0, band.window - band.stride) // across) + 1
    several = Blocks(size, -(-rows // size), spans, across, band.stride, band.remainders)
    return single if single.entries <= MARGIN * several.entries else several


class _Writer:
    def __init__(self, spec: BandSpec, skewed: int, assign: Assign) -> None:
        self.spec = spec
        self.band = spec.bands[skewed]
        self.blocks = blocks_of(self.band)
        self.assign = assign
        roles = [r for r in (*spec.out, *spec.first.roles, *spec.second.roles) if isinstance(r, Axis)]
        self.letters: dict[Part | Axis, str] = {
            Part(ROW, skewed): "i",
            Part(COLUMN, skewed): "j",
            Part(DIAGONAL, skewed): "w",
        }
        for axis, letter in letters_of(list(dict.fromkeys(roles)), _RESERVED).items():
            self.letters[axis] = letter
        self.outer = [n for n in range(len(spec.bands)) if n != skewed]
        spare = (c for c in _SPARE if c not in _RESERVED and c not in self.letters.values())
        for n in self.outer:  # what is left of the columns after a slice is as long as the rows
            self.letters[Part(ROW, n)] = self.letters[Part(COLUMN, n)] = next(spare)
            self.letters[Part(DIAGONAL, n)] = next(spare)
        b = self.blocks
        self.block, self.remainder = "n" if b.count > 1 else "", "s" if b.step > 1 else ""
        self.counts = (b.count,) if b.count > 1 else ()
        self.steps = (b.step,) if b.step > 1 else ()
        names = iter(_LOOPS)
        self.loops = {n: loop(next(names), spec.bands[n].window) for n in self.outer}
        self.each = loop(next(names), b.step)  # remainder

    def named(self, shaped: Shaped) -> Shaped:
        return shaped.named(self.assign)

    def operand(self, dims: Dims, node: Node) -> Shaped:
        return Shaped(node, self.roles(dims.roles), tuple(int(a.hi) for a in dims.array.axes))

    def roles(self, roles: Sequence[Part | Axis]) -> str:
        """One letter for each role: rows i, columns j, diagonals w in the band that is skewed."""
        return "".join(self.letters[r] for r in roles)

    # --- into blocks

    def in_rows(self, x: Shaped) -> Shaped:
        """Rows as blocks of rows."""
        at, b = x.letters.index("i"), self.blocks
        x = x.padded(at, 0, b.rows - x.extents[at])
        return x.reshaped(at, 1, f"{self.block}i{self.remainder}", (*self.counts, b.size, *self.steps))

    def in_columns(self, y: Shaped) -> Shaped:
        """Columns as those of each block of rows, side by side."""
        at, b = y.letters.index("j"), self.blocks
        widths = {at: (self.band.before, b.columns - self.band.before - y.extents[at])}
        for n in self.outer:
            own, outer = y.letters.index(self.letters[Part(COLUMN, n)]), self.spec.bands[n]
            widths[own] = outer.before, outer.reach - outer.before - y.extents[own]
        y = y.padded_by(widths)
        if b.step > 1:
            y = y if b.stride == 1 else self.named(y)
            y = by_remainders(y, at, b.stride, b.step, self.each)
        if b.count == 1:
            return y
        y = y.reshaped(at, 1, "nj", (b.count + b.spans - 1, b.across))
        if b.spans == 1:
            return y
        y = self.named(y)
        parts = tuple(y.sliced(at, m, m + b.count).node for m in range(b.spans))
        if b.spans > 3:
            span = loop("m", b.spans)
            parts = (Each(y.moving(at, span.axis, 1, b.count).node, (span,)),)
        extents = (*y.extents[:at], b.count, b.width, *y.extents[at + 2 :])
        return Shaped(Joined(parts, at + 1), y.letters, extents)

    def skewed(self, p: Shaped) -> Shaped:
        """Diagonals as columns: rows of W elements as a parallelogram among zeros."""
        b, others = self.blocks, p.letters.replace("i", "").replace("w", "")
        if self.band.step < 0:
            p = p.reversed(p.letters.index("w"))
        p = self.in_rows(p).arranged(f"{others}{self.block}{self.remainder}iw")
        last, wide = len(p.letters) - 1, b.width + self.band.stride
        p = p.padded(last, 0, wide - self.band.window)
        p = p.reshaped(last - 1, 2, "i", (b.size * wide,)).sliced(last - 1, 0, b.size * b.width)
        return p.reshaped(last - 1, 1, "ij", (b.size, b.width))

    # --- and back

    def straight(self, p: Shaped) -> Shaped:
        """Columns as diagonals: the parallelogram of each block as rows of W elements."""
        b, at = self.blocks, len(p.letters) - 2
        wide = b.width + self.band.stride
        p = p.reshaped(at, 2, "i", (b.size * b.width,)).padded(at, 0, b.size * self.band.stride)
        p = p.reshaped(at, 1, "iw", (b.size, wide)).sliced(at + 1, 0, self.band.window)
        if self.remainder:
            p = p.arranged(p.letters.replace("si", "is"))
        p = self.out_rows(p)
        return p.reversed(p.letters.index("w")) if self.band.step < 0 else p

    def out_rows(self, x: Shaped) -> Shaped:
        at, b = x.letters.index(self.block or "i"), self.blocks
        taken = len(self.counts) + 1 + len(self.steps)
        return x.reshaped(at, taken, "i", (b.rows,)).sliced(at, 0, self.band.rows)

    def out_columns(self, y: Shaped) -> Shaped:
        """The columns of all blocks, added where they overlap."""
        at, b, band = y.letters.index(self.block or "j"), self.blocks, self.band
        if b.spans > 1:
            y = self.named(y.reshaped(at + 1, 1, "mj", (b.spans, b.across)))
            span = loop("m", b.spans)
            widths: list[tuple[Expr, Expr]] = [NO_WIDTH] * (len(y.extents) - 1)
            widths[at] = span.axis, as_expr(b.spans - 1) - span.axis
            part = apply_steps(y.at(at + 1, span.axis).node, [Pad(tuple(widths))])
            extents = (*y.extents[:at], b.count + b.spans - 1, *y.extents[at + 2 :])
            y = Shaped(Total(Each(part, (span,))), y.letters.replace("m", ""), extents)
        y = y.reshaped(at, len(self.counts) + 1, "j", (b.across * (b.count + b.spans - 1),))
        if b.step > 1:
            y = y if b.stride == 1 else self.named(y)
            y = added_remainders(y, at, b.stride, self.each, self.spec.first.array.dtype)
        widths_of = {at: (-band.before, band.columns + band.before - b.columns)}
        for n in self.outer:
            own, outer = y.letters.index(self.letters[Part(COLUMN, n)]), self.spec.bands[n]
            widths_of[own] = -outer.before, outer.columns + outer.before - y.extents[own]
        return y.padded_by(widths_of)

    # --- the bands that are not skewed: one diagonal after the other

    def diagonal(self, x: Shaped) -> Shaped:
        """``x`` at a diagonal of each outer band."""
        for n in self.outer:
            x = x.at(x.letters.index(self.letters[Part(DIAGONAL, n)]), self.loops[n].axis)
        return x

    def columns_of(self, y: Shaped) -> Shaped:
        """``y`` at the columns of the rows on a diagonal of each outer band."""
        for n in self.outer:
            band, at = self.spec.bands[n], y.letters.index(self.letters[Part(COLUMN, n)])
            y = y.moving(at, _first_column(band, self.loops[n].axis), band.stride, band.rows)
        return y

    def placed(self, y: Shaped) -> Shaped:
        """Rows on a diagonal of each outer band as columns among zeros; in a transposed product no stride is left there."""
        if not self.outer:
            return y
        widths: list[tuple[Expr, Expr]] = [NO_WIDTH] * len(y.extents)
        extents = list(y.extents)
        for n in self.outer:
            band, at = self.spec.bands[n], y.letters.index(self.letters[Part(COLUMN, n)])
            here = _first_column(band, self.loops[n].axis)
            widths[at], extents[at] = (here, as_expr(band.reach - band.rows) - here), band.reach
        return Shaped(apply_steps(y.node, [Pad(tuple(widths))]), y.letters, tuple(extents))

    def total(self, x: Shaped) -> Shaped:
        """The sum of ``x`` over all diagonals of the outer bands."""
        loops = tuple(self.loops[n] for n in self.outer)
        return Shaped(Total(Each(x.node, loops)), x.letters, x.extents) if loops else x

    def stacked(self, x: Shaped, out: str) -> Shaped:
        """``x`` over all of ``out``, with the diagonals of the outer bands as dimensions."""
        new = {self.letters[Part(DIAGONAL, n)]: n for n in self.outer}
        for letter in sorted(new, key=out.index):
            at = out.index(letter)
            turns = self.loops[new[letter]]
            node = Stacked((Each(x.node, (turns,)),), at)
            letters = x.letters[:at] + letter + x.letters[at:]
            x = Shaped(node, letters, (*x.extents[:at], turns.count, *x.extents[at:]))
        return x.arranged(out)


def _first_column(band: Band, diagonal: Axis) -> Expr:
    """The first row's column on ``diagonal``."""
    number = diagonal if band.step > 0 else as_expr(band.window - 1) - diagonal
    return abs(band.step) * number


def band_source(spec: BandSpec, operands: Sequence[Node], assign: Assign, skewed: int = 0) -> Node:
    """``spec`` on the nodes of ``spec.operands``, by blocks of the band with the number ``skewed``.

    ``assign`` gives a node a name.
    """
    w = _Writer(spec, skewed, assign)
    first, second = w.operand(spec.first, operands[0]), w.operand(spec.second, operands[1])
    out, n, s = w.roles(spec.out), w.block, w.remainder
    keep = w.named if w.outer else lambda x: x
    if spec.kind == SCORES:
        others = "".join(c for c in out if c in first.letters + second.letters and c not in "iw")
        rows, columns = keep(w.in_rows(first)), w.named(w.in_columns(second))
        dense = einsum(rows, w.columns_of(columns), f"{others}{n}{s}ij")
        result = w.stacked(w.straight(dense if w.outer else w.named(dense)), out)
    elif spec.kind == TRANSPOSED:
        inner, rows = w.named(w.skewed(first)), keep(w.in_rows(second))
        dense = einsum(w.diagonal(inner), rows, out.replace("j", f"{n}j{s}"))
        result = w.out_columns(w.named(w.total(w.placed(dense))))
    else:
        inner, columns = w.named(w.skewed(first)), w.named(w.in_columns(second))
        dense = einsum(w.diagonal(inner), w.columns_of(columns), out.replace("i", f"{n}i{s}"))
        result = w.out_rows(w.named(w.total(dense)))
    return spec.finish.of(result.node, operands[2:])

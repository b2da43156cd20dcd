"""Convolutions along one dimension as nodes: by matrices that are constant along their diagonals, and in blocks.

A matrix with ``u[s * r + q]`` at (r, q) is ``u`` repeated for each row and read as rows that are ``s`` elements longer, so that each
begins ``s`` further on; read as rows that are ``s`` shorter, each begins ``s`` further back. The repeated rows have a power of
two for a length: XLA finds the place of each element by division and remainder.

Sums along diagonals are sums of rows, each moved against the one before: groups of rows first, then groups of these. The first of them are
sums of slices, for which one operand of the product has zeros around it; later ones, which are shorter, are sums of padded rows.

Sums of products of a long line with itself moved by a few positions, in blocks.

``out[t] = sum over s of u[t + s] * v[s]`` with many ``s`` and few ``t`` is what the gradient of a short kernel is, and a correlation at
a few lags. Nothing in it is a product of matrices, and its Toeplitz matrix has as many columns as the line has elements. With
``s = B * p + b`` the line is rows of ``B`` elements, and

    G[b, q] = sum over p of v[B * p + b] * u[B * p + q]         for q < B + T - 1
    out[t]  = sum over b of G[b, b + t]

is one product of matrices, of which two rows of blocks side by side are all that is laid out, and a sum along the diagonals of a small matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Expr, as_expr
from jaxte.lang.limits import FEWER, LONG_SUM, NARROW
from jaxte.lang.operators import ADD
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.loops import Each, Joined, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.arrays.views import ALL, Index, Pad, Range, Tile
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import NO_WIDTH, Shaped, einsum
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.conv.lines.toeplitz import LHS, OUT, Line, Roles, ToeplitzSpec, axes_in


def toeplitz_source(spec: ToeplitzSpec, operands: Sequence[Node], assign: Callable[[Node], Node]) -> Node:
    """``spec`` on the nodes of ``spec.operands``; ``assign`` gives a node a name."""
    *arrays, out = spec.lettered(operands, "txkp")
    if spec.kind == OUT:
        inner = "".join(letter for letter in out if letter != "t") + spec.rows.name + spec.columns.name
        arrays = [
            _spread(own, spec, array.dtype) for own, array in zip(arrays, (spec.lhs, spec.rhs), strict=True)
        ]
        result = _diagonals(spec, einsum(arrays[0], arrays[1], inner), assign).arranged(out)
    else:
        at = 0 if spec.kind == LHS else 1
        arrays[at] = matrix(spec, arrays[at], (spec.lhs, spec.rhs)[at].dtype).named(assign)
        result = einsum(arrays[0], arrays[1], out)
    return assign(spec.finished(result.node, operands))


def matrix(spec: ToeplitzSpec, u: Shaped, dtype: str) -> Shaped:
    """The matrix over rows and columns of what stands on the line ``u``, its last dimension."""
    rows, columns = spec.rows, spec.columns
    step = -rows.factor if rows.backwards else rows.factor
    at = len(u.letters) - 1
    length = _line_length(spec)
    behind = length - spec.before - spec.spread * (u.extents[at] - 1) - 1
    u = u.spread(at, spec.before, behind, spec.spread, dtype)
    extents = (*u.extents[:at], rows.extent * length)
    u = Shaped(apply_steps(u.node, [Tile(at, as_expr(rows.extent), at + 1)]), u.letters, extents)
    if step > 0:
        u = u.padded(at, 0, rows.extent * step)
    else:
        u = u.sliced(at, 0, rows.extent * (length + step))
    u = u.reshaped(at, 1, rows.name + columns.name, (rows.extent, length + step))
    start = rows.factor * (rows.extent - 1) if step < 0 else 0
    return u.every(at + 1, start, columns.factor, columns.extent)


def _line_length(spec: ToeplitzSpec) -> int:
    rows = spec.rows
    return 1 << (spec.span + (rows.factor if rows.backwards else 0) - 1).bit_length()


def row_length(spec: ToeplitzSpec) -> int:
    """How many elements are written for each row: of the line that is repeated, or of a product with zeros around its columns."""
    if spec.kind != OUT:
        return _line_length(spec)
    columns = spec.columns
    return columns.factor * (columns.extent - 1) + 1 + 2 * spec.rows.factor * (group(spec.rows.extent) - 1)


def _spread(operand: Shaped, spec: ToeplitzSpec, dtype: str) -> Shaped:
    """An operand whose position are the columns, as far apart as these, among as many zeros as the first rows are moved by."""
    at = operand.letters.find(spec.columns.name)
    if at < 0:
        return operand
    around = spec.rows.factor * (group(spec.rows.extent) - 1)
    return operand.spread(at, around, around, spec.columns.factor, dtype)


def _diagonals(spec: ToeplitzSpec, m: Shaped, assign: Callable[[Node], Node]) -> Shaped:
    """The sums of the last two dimensions of ``m`` along their diagonals, at the positions of the result."""
    step, at, moved = spec.rows.factor, len(m.extents) - 2, _moved_slices
    while (rows := m.extents[at]) > 1:
        size = group(rows)
        count = ceil(rows / size)
        if count > 1:
            m = m.padded(at, 0, count * size - rows)
            m = m.reshaped(at, 1, m.letters[at] + "p", (count, size))
        m = moved(m.named(assign), len(m.extents) - 2, step)
        step, moved = step * size, _moved
        if count == 1:
            break
    else:
        m = m.reshaped(at, 2, "t", (m.extents[at + 1],))
    end = spec.before + spec.spread * (spec.positions - 1) + 1
    m = m.padded(at, max(0, -spec.before), max(0, end - m.extents[at]))
    m = m.every(at, max(0, spec.before), spec.spread, spec.positions)
    return Shaped(m.node, m.letters[:at] + "t", m.extents)


def group(rows: int) -> int:
    """How many of so many rows are added first: about as many as there are then groups of."""
    levels = 1
    # Rows that are moved and added in one loop.
    while LONG_SUM**levels < rows:
        levels += 1
    return ceil(rows ** (1 / levels))


def _moved_slices(m: Shaped, at: int, step: int) -> Shaped:
    """The same as ``_moved`` of rows with as many zeros on both sides as they are moved by at most."""
    size = m.extents[at]
    row = loop("i", size)
    most = step * (size - 1)
    length = m.extents[at + 1] - most
    moved = step * row.axis
    entry = Range(as_expr(most) - moved, as_expr(most + length) - moved)
    part = apply_steps(m.node, [Index((*(ALL,) * at, row.axis, entry))])
    return Shaped(Total(Each(part, (row,))), m.letters[:at] + m.letters[at + 1 :], (*m.extents[:at], length))


def _moved(m: Shaped, at: int, step: int) -> Shaped:
    """The rows in dimension ``at``, moved by ``step`` each along the next dimension, which is the last, and added."""
    size = m.extents[at]
    row = loop("i", size)
    widths: list[tuple[Expr, Expr]] = [NO_WIDTH] * (len(m.extents) - 1)
    widths[-1] = step * row.axis, step * (as_expr(size - 1) - row.axis)
    part = apply_steps(m.at(at, row.axis).node, [Pad(tuple(widths))])
    extents = (*m.extents[:at], m.extents[at + 1] + step * (size - 1))
    return Shaped(Total(Each(part, (row,))), m.letters[:at] + m.letters[at + 1 :], extents)


@dataclass(frozen=True)
class Blocks:
    """A Toeplitz product in blocks.

    Attributes:
        spec: the product by its matrix.
        short, line: its two lines: the few positions of the result, and the many that are summed over.
        size: how many elements a block has.
    """

    spec: ToeplitzSpec
    short: Line
    line: Line
    size: int

    @property
    def count(self) -> int:
        return self.line.extent // self.size

    @property
    def rest(self) -> int:
        """How many elements of the line are left behind the blocks: zeros in place of them would be multiplied."""
        return self.line.extent % self.size

    @property
    def zeros(self) -> int:
        """How many positions of the line that is read have no element."""
        return self.spec.span - self.spec.positions

    @property
    def width(self) -> int:
        """How many elements of the line are read beside a block."""
        return self.size + self.short.extent - 1


def lines_of(spec: ToeplitzSpec) -> tuple[Line, Line] | Refusal:
    """The line of the result, and the one that is summed over, of a product by a matrix whose neighbours are elements beside each other."""
    lines = {line.name: line for line in (spec.rows, spec.columns)}
    if spec.kind == OUT or "t" not in lines:
        return Refusal("the matrix is the result")
    if spec.spread != 1 or any(line.factor != 1 for line in lines.values()):
        return Refusal("positions are not one apart")
    short = lines.pop("t")
    (line,) = lines.values()
    return short, line


def blocks_of(spec: ToeplitzSpec) -> Blocks | Refusal:
    """A product by a matrix that is summed over its long line, in blocks."""
    lines = lines_of(spec)
    if isinstance(lines, Refusal):
        return lines
    short, line = lines
    # Smaller matrices are too narrow.
    size = max(LONG_SUM, 1 << (short.extent - 1).bit_length())
    # Times as many elements as a block has that the line has at least.
    if line.extent < FEWER * size:
        return Refusal(f"fewer than {FEWER} blocks of {size} elements")
    return Blocks(spec, short, line, size)


def blocks_source(blocks: Blocks, operands: Sequence[Node], assign: Callable[[Node], Node]) -> Node:
    """``blocks`` on the nodes of the operands of its specification; ``assign`` gives a node a name."""
    spec = blocks.spec
    *both, out = spec.lettered(operands, "txkpqb")
    u, v = _on_its_line(blocks, both[spec.laid_out]), both[1 - spec.laid_out]
    if blocks.line.backwards:
        v = v.reversed(v.letters.index(blocks.line.name))
    u, v = u.named(assign), v.named(assign)
    kept = out.replace("t", "")
    result = _along_diagonals(blocks, _product(blocks, u, v, kept, assign).named(assign))
    if blocks.rest:
        result = Shaped(
            Apply(ADD, (result.node, _rest(blocks, u, v, kept).node)), result.letters, result.extents
        )
    if blocks.short.backwards:
        result = result.reversed(len(kept))
    return assign(spec.finished(result.arranged(out).node, operands))


def _on_its_line(blocks: Blocks, u: Shaped) -> Shaped:
    """What is read at several positions, with zeros where a position has no element."""
    spec, at = blocks.spec, len(u.letters) - 1
    return u.padded(at, spec.before, spec.span - spec.before - u.extents[at])


def _product(blocks: Blocks, u: Shaped, v: Shaped, kept: str, assign: Callable[[Node], Node]) -> Shaped:
    """Each block of ``v`` times what is read beside it: its own positions, and the first ones of the next block."""
    count, size, more = blocks.count, blocks.size, blocks.short.extent - 1
    at, place = len(u.letters) - 1, v.letters.index(blocks.line.name)
    rows = u.sliced(at, 0, count * size).reshaped(at, 1, "pq", (count, size))
    there = u.sliced(at, size, u.extents[at]).padded(at, 0, count * size + size - u.extents[at])
    there = there.reshaped(at, 1, "pq", (count, size)).sliced(at + 1, 0, more)
    extents = (*rows.extents[:-1], blocks.width)
    rows = Shaped(Joined((rows.node, there.node), at + 1), rows.letters, extents).named(assign)
    blocked = v.sliced(place, 0, count * size).reshaped(place, 1, "pb", (count, size))
    return einsum(blocked, rows, f"{kept}bq")


def _rest(blocks: Blocks, u: Shaped, v: Shaped, kept: str) -> Shaped:
    """What is left of the line behind its blocks, by its matrix."""
    at, place, done = len(u.letters) - 1, v.letters.index(blocks.line.name), blocks.line.extent - blocks.rest
    lines = Line("t", blocks.short.extent, 1), Line(blocks.line.name, blocks.rest, 1)
    spec = replace(blocks.spec, rows=lines[0], columns=lines[1], before=0, positions=u.extents[at] - done)
    dtype = (spec.lhs, spec.rhs)[spec.laid_out].dtype
    m = matrix(spec, u.sliced(at, done, u.extents[at]), dtype)
    return einsum(v.sliced(place, done, blocks.line.extent), m, f"{kept}t")


def _along_diagonals(blocks: Blocks, g: Shaped) -> Shaped:
    """``sum over b of g[b, b + t]``: read as rows that are one element longer, diagonals are columns."""
    size, width, at = blocks.size, blocks.width, len(g.letters) - 2
    flat = g.reshaped(at, 2, "q", (size * width,)).padded(at, 0, size)
    rows = flat.reshaped(at, 1, "bt", (size, width + 1)).sliced(at + 1, 0, blocks.short.extent)
    extents = (*rows.extents[:at], blocks.short.extent)
    return Shaped(Reduced("sum", rows.node, (at,)), rows.letters[:at] + "t", extents)


def blocks_work(blocks: Blocks) -> Work:
    """A dense product of blocks with what is read beside them, which is laid out; stated, as that of a Toeplitz matrix."""
    spec = blocks.spec
    laid_out, other = (
        (spec.lhs_roles, spec.rhs_roles) if spec.kind == LHS else (spec.rhs_roles, spec.lhs_roles)
    )

    def size(roles: Roles) -> int:
        return prod(int(a.extent) for a in axes_in(roles))

    rows = blocks.count * blocks.width
    small = blocks.size * blocks.width * size(spec.out)
    copied = rows * size(laid_out) + blocks.count * blocks.size * size(other) + 2 * small
    width = dtypes.width(spec.lhs.dtype)
    return Work(
        dot=2.0 * prod(spec.extents.values()) * rows * blocks.size * (1 + NARROW / blocks.size),
        stream=2.0 * width * copied,
        kernel=spec.groups + 4,
        temporaries=width * (rows * size(laid_out) + small),
    )

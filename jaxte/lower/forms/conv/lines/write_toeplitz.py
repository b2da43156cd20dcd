"""Convolutions as nodes by matrices that are constant along their diagonals.

A matrix with ``u[s * r + q]`` at (r, q) is ``u`` repeated for each row and read as rows that are ``s`` elements longer, so that each
begins ``s`` further on; read as rows that are ``s`` shorter, each begins ``s`` further back. The repeated rows have a power of
two for a length: XLA finds the place of each element by division and remainder.

Sums along diagonals are sums of rows, each moved against the one before: groups of rows first, then groups of these. The first of them are
sums of slices, for which one operand of the product has zeros around it; later ones, which are shorter, are sums of padded rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from jaxte.lang.expr import Expr, as_expr
from jaxte.lower.arrays.loops import Each, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.steps import ALL, Index, Pad, Range, Tile
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.lettered_array import NO_WIDTH, Shaped, einsum
from jaxte.lower.forms.conv.lines.toeplitz import LHS, OUT, ToeplitzSpec

_ROWS_AT_ONCE = 32  # rows that are moved and added in one loop


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
    while _ROWS_AT_ONCE**levels < rows:
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

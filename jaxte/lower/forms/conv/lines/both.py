"""Convolutions of a long line with a long kernel as a product of two matrices, one of each operand.

The Toeplitz matrix of ``out[t] = sum over s of u[t + s] * v[s]`` has as many elements as there are products. With ``t = B * q + r`` and
``n = B * q + s``

    out[B * q + r] = sum over n of u[r + n] * v[n - B * q]

is a product of a matrix with ``B`` rows, of ``u``, and of one with a row for each ``q``, of ``v``: the square root of as many elements for each
position where ``B`` is about the square root of the extent. Zeros around the rows of ``v`` are multiplied; where ``u`` has no element
for any ``r``, there are no columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from jaxte.lang import dtypes
from jaxte.lang.limits import BLOCK, NARROW
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.lettered_array import einsum
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.conv.lines.blocks import lines_of, matrix
from jaxte.lower.forms.conv.lines.toeplitz import LHS, Line, ToeplitzSpec, axes_in


@dataclass(frozen=True)
class TwoMatrices:
    """A Toeplitz product by a matrix of each operand.

    Attributes:
        spec: the product by the matrix of one of them.
        short, line: the line of the result, and the one that is summed over.
        size: how many positions of the result stand beside each other, a row of the first matrix for each.
        first, count: the columns of both matrices: where they begin on the line that is laid out, and how many there are.
    """

    spec: ToeplitzSpec
    short: Line
    line: Line
    size: int
    first: int
    count: int

    @property
    def turns(self) -> int:
        """The rows of the second matrix."""
        return ceil(self.short.extent / self.size)

    @property
    def copied(self) -> int:
        """The elements of both matrices."""
        laid_out, other = _operands(self.spec)
        return self.count * (self.size * laid_out + self.turns * other)


def two_matrices_of(spec: ToeplitzSpec) -> TwoMatrices | Refusal:
    """``spec`` by the rows of which least is copied."""
    lines = lines_of(spec)
    if isinstance(lines, Refusal):
        return lines
    short, line = lines
    if min(short.extent, line.extent) < BLOCK:
        return Refusal(f"its lines have fewer than {BLOCK} elements")
    sizes = (1 << n for n in range(2, short.extent.bit_length()))
    return min((_in_rows(spec, short, line, size) for size in sizes), key=lambda own: own.copied)


def _in_rows(spec: ToeplitzSpec, short: Line, line: Line, size: int) -> TwoMatrices:
    turns = ceil(short.extent / size)
    first = max(0, spec.before - size + 1)
    last = min(spec.before + spec.positions, line.extent + size * (turns - 1))
    return TwoMatrices(spec, short, line, size, first, last - first)


def two_matrices_source(own: TwoMatrices, operands: Sequence[Node], assign: Callable[[Node], Node]) -> Node:
    """``own`` on the nodes of the operands of its specification; ``assign`` gives a node a name."""
    spec = own.spec
    *both, out = spec.lettered(operands, "txknqr")
    u, v = both[spec.laid_out], both[1 - spec.laid_out]
    v = v.arranged(v.letters.replace(own.line.name, "") + own.line.name)
    if own.line.backwards:
        v = v.reversed(len(v.letters) - 1)
    columns = Line("n", own.count, 1)
    moved = own.size * (own.turns - 1)
    rows = Line("r", own.size, 1), Line("q", own.turns, own.size, backwards=True)
    before = spec.before - own.first, moved - own.first
    u, v = (
        matrix(replace(spec, rows=line, columns=columns, before=zeros), array, own.spec.lhs.dtype).named(
            assign
        )
        for line, zeros, array in zip(rows, before, (u, v), strict=True)
    )
    kept = out.replace("t", "")
    result = einsum(u, v, f"{kept}qr").reshaped(len(kept), 2, "t", (own.turns * own.size,))
    result = result.sliced(len(kept), 0, own.short.extent)
    if own.short.backwards:
        result = result.reversed(len(kept))
    return assign(spec.finished(result.arranged(out).node, operands))


def two_matrices_work(own: TwoMatrices) -> Work:
    """A product of two matrices that are written to memory; stated, as that of one of them."""
    spec = own.spec
    width = dtypes.width(spec.lhs.dtype)
    results = own.turns * own.size * prod(int(a.extent) for a in axes_in(spec.out))
    everywhere = prod(spec.extents.values()) * own.turns * own.size * own.count
    return Work(
        dot=2.0 * everywhere * (1 + NARROW / min(own.size, own.turns)),
        stream=2.0 * width * (own.copied + results),
        kernel=spec.groups + 3,
        temporaries=width * own.copied,
    )


def _operands(spec: ToeplitzSpec) -> tuple[int, int]:
    """How many lines the operand that is laid out has, and the other one."""
    lhs, rhs = (prod(int(a.extent) for a in axes_in(roles)) for roles in (spec.lhs_roles, spec.rhs_roles))
    return (lhs, rhs) if spec.kind == LHS else (rhs, lhs)

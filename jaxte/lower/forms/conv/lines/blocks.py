"""Sums of products of a long line with itself moved by a few positions, in blocks.

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
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.operators import ADD
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.loops import Joined
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Reduced
from jaxte.lower.code.lettered_array import Shaped, einsum
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.default_work import NARROW
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.conv.lines.toeplitz import LHS, OUT, Line, Roles, ToeplitzSpec, axes_in
from jaxte.lower.forms.conv.lines.write_toeplitz import matrix

_SMALLEST = 32  # elements of a block, below which the matrices are too narrow
_MOST_OF_LINE = 4  # times as many elements as a block has that the line has at least


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

    @property
    def laid_out(self) -> int:
        """The number of the operand that is read at several positions."""
        return 0 if self.spec.kind == LHS else 1


def blocks_of(spec: ToeplitzSpec) -> Blocks | Refusal:
    """A product by a matrix that is summed over its long line, in blocks."""
    lines = {line.name: line for line in (spec.rows, spec.columns)}
    if spec.kind == OUT or "t" not in lines:
        return Refusal("the matrix is the result")
    if spec.spread != 1 or any(line.factor != 1 for line in lines.values()):
        return Refusal("positions are not one apart")
    short = lines.pop("t")
    (line,) = lines.values()
    size = max(_SMALLEST, 1 << (short.extent - 1).bit_length())
    if line.extent < _MOST_OF_LINE * size:
        return Refusal(f"fewer than {_MOST_OF_LINE} blocks of {size} elements")
    return Blocks(spec, short, line, size)


def blocks_source(blocks: Blocks, operands: Sequence[Node], assign: Callable[[Node], Node]) -> Node:
    """``blocks`` on the nodes of the operands of its specification; ``assign`` gives a node a name."""
    spec = blocks.spec
    *both, out = spec.lettered(operands, "txkpqb")
    u, v = _on_its_line(blocks, both[blocks.laid_out]), both[1 - blocks.laid_out]
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
    dtype = (spec.lhs, spec.rhs)[blocks.laid_out].dtype
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

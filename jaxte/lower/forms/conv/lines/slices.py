"""Convolutions along one dimension with nothing to contract: a slice of the line for each position of the kernel, multiplied and added.

    out[b, t] = sum over k of u[b, t + k] * v[b, k]         sum(u[:, i:i + T] * v[:, i, None] for i in range(K))

XLA makes one loop of it, which holds nothing and runs over vectors: two to four elements a nanosecond for 33 to 128 taps. Fewer taps are
written so by the general path; more make slow code. Kernels that differ from row to row have no product of matrices that is as good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from jaxte.lang import dtypes
from jaxte.lang.graphs import among
from jaxte.lang.operators import MULTIPLY
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.loops import Each, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.code.lettered_array import Shaped
from jaxte.lower.code.spec import Refusal
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.conv.lines.roles import axes_in
from jaxte.lower.forms.conv.lines.toeplitz import LHS, OUT, Line, ToeplitzSpec
from jaxte.lower.limits import LONGEST_UNROLLED, MOST_DIAGONALS


@dataclass(frozen=True)
class LineSlices:
    """A Toeplitz product whose ``short`` line is summed over, as slices of the operand that is laid out, at the positions ``line``."""

    spec: ToeplitzSpec
    short: Line
    line: Line

    @property
    def moved(self) -> int:
        """The number of the operand of which there is a slice for each position."""
        return 0 if self.spec.kind == LHS else 1


def line_slices_of(spec: ToeplitzSpec) -> LineSlices | Refusal:
    """``spec`` as slices, where every product counts once."""
    lines = {line.name: line for line in (spec.rows, spec.columns)}
    if spec.kind == OUT or "t" not in lines:
        return Refusal("the matrix is the result")
    if spec.spread != 1:
        return Refusal("there are zeros between its elements")
    if not all(among(a, spec.out) for a in axes_in(spec.lhs_roles, spec.rhs_roles)):
        return Refusal("an axis is contracted: there are products of matrices")
    line = lines.pop("t")
    (short,) = lines.values()
    if not LONGEST_UNROLLED < short.extent <= MOST_DIAGONALS:
        return Refusal(f"its {short.extent} slices are not {LONGEST_UNROLLED + 1} to {MOST_DIAGONALS}")
    return LineSlices(spec, short, line)


def line_slices_source(own: LineSlices, operands: Sequence[Node], assign: Callable[[Node], Node]) -> Node:
    """``own`` on the nodes of the operands of its specification; ``assign`` gives a node a name."""
    spec, short, line = own.spec, own.short, own.line
    *both, out = spec.lettered(operands, "txk")
    u, v = both[own.moved], both[1 - own.moved]
    at = len(u.letters) - 1
    u = u.padded(at, spec.before, spec.span - spec.before - u.extents[at])
    u = _over(out, Shaped(u.node, u.letters[:at] + "t", u.extents))
    u = u.named(assign)
    if short.backwards:
        v = v.reversed(v.letters.index(short.name))
    v = _over(out + short.name, v)
    turn = loop("i", short.extent)
    part = u.moving(out.index("t"), short.factor * turn.axis, line.factor, line.extent)
    product = Apply(MULTIPLY, (part.node, v.at(len(out), turn.axis).node))
    extents = tuple(max(a, b) for a, b in zip(part.extents, v.extents, strict=False))
    result = Shaped(Total(Each(product, (turn,))), out, extents)
    if line.backwards:
        result = result.reversed(out.index("t"))
    return assign(spec.finished(result.node, operands))


def _over(letters: str, array: Shaped) -> Shaped:
    """``array`` with a dimension for each of ``letters``, of extent 1 where it has none."""
    array = array.arranged("".join(a for a in letters if a in array.letters))
    for at, letter in enumerate(letters):
        if letter not in array.letters:
            array = array.reshaped(at, 0, letter, (1,))
    return array


def line_slices_work(own: LineSlices) -> Work:
    """Every product, in one loop; the line with zeros around it is written once."""
    spec = own.spec
    moved = (spec.lhs_roles, spec.rhs_roles)[own.moved]
    written = spec.span * prod(int(a.extent) for a in axes_in(moved))
    each = own.line.extent * prod(int(a.extent) for a in axes_in(spec.out))
    taps = own.short.extent
    return Work(
        tap=float(each * taps), stream=2.0 * dtypes.width(spec.lhs.dtype) * written, kernel=max(1, taps / 8)
    )

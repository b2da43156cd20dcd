"""The forms of a convolution along one dimension, by a Toeplitz matrix, by blocks of one, or by Fourier transforms, with what each costs.

Where nothing is contracted, there is one more: a slice of the line for each position of the kernel, multiplied and added.

    out[b, t] = sum over k of u[b, t + k] * v[b, k]         sum(u[:, i:i + T] * v[:, i, None] for i in range(K))

XLA makes one loop of it, which holds nothing and runs over vectors: two to four elements a nanosecond for 33 to 128 taps. Fewer taps are
written so by the general path; more make slow code. Kernels that differ from row to row have no product of matrices that is as good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2, prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis
from jaxte.lang.graphs import among, identical
from jaxte.lang.limits import LONGEST_UNROLLED, MOST_DIAGONALS, NARROW
from jaxte.lang.operators import MULTIPLY
from jaxte.lower.arrays.counts import total_flops, total_reordered
from jaxte.lower.arrays.elementwise import Apply
from jaxte.lower.arrays.loops import Each, Total, loop
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.body.candidates import Candidate, Search, Wanted, operands_of, way
from jaxte.lower.body.evaluator import Body
from jaxte.lower.code.lettered_array import Shaped
from jaxte.lower.code.spec import Array, Dry, Refusal, on_names
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.conv.lines.blocks import (
    Blocks,
    blocks_of,
    blocks_source,
    blocks_work,
    row_length,
    toeplitz_source,
)
from jaxte.lower.forms.conv.lines.both import (
    TwoMatrices,
    two_matrices_of,
    two_matrices_source,
    two_matrices_work,
)
from jaxte.lower.forms.conv.lines.fourier import fourier_source, fourier_spec, fourier_windows, points_of
from jaxte.lower.forms.conv.lines.toeplitz import (
    LHS,
    OUT,
    Line,
    ToeplitzSpec,
    axes_in,
    order_of_reads,
    recognise_toeplitz,
)
from jaxte.lower.forms.conv.recognise import Matched
from jaxte.lower.forms.conv.spec import Window
from jaxte.sets.intervals import extent_of


@dataclass(frozen=True)
class LineSlices:
    """A Toeplitz product whose ``short`` line is summed over, as slices of the operand that is laid out, at the positions ``line``."""

    spec: ToeplitzSpec
    short: Line
    line: Line


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
    u, v = both[spec.laid_out], both[1 - spec.laid_out]
    at = len(u.letters) - 1
    u = u.padded(at, spec.before, spec.span - spec.before - u.extents[at])
    u = _over(out, Shaped(u.node, u.letters[:at] + "t", u.extents))
    u = u.named(assign)
    if short.backwards:
        v = v.reversed(v.letters.index(short.name))
    turn = loop("i", short.extent)
    v = _over(out, v.at(v.letters.index(short.name), turn.axis))
    part = u.moving(out.index("t"), short.factor * turn.axis, line.factor, line.extent)
    product = Apply(MULTIPLY, (part.node, v.node))
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
    moved = (spec.lhs_roles, spec.rhs_roles)[spec.laid_out]
    written = spec.span * prod(int(a.extent) for a in axes_in(moved))
    each = own.line.extent * prod(int(a.extent) for a in axes_in(spec.out))
    taps = own.short.extent
    return Work(
        tap=float(each * taps), stream=2.0 * dtypes.width(spec.lhs.dtype) * written, kernel=max(1, taps / 8)
    )


MATRIX = "Toeplitz matrix"
DIAGONALS = "sums along diagonals"
BLOCKS = "products of blocks"
TWO_MATRICES = "two Toeplitz matrices"
SLICES = "slices of a line"


def toeplitz_candidates(body: Body, found: Matched, wanted: Wanted) -> Iterator[Candidate]:
    """The matrix of the operand for which it takes less, or of both, the product summed along its diagonals, blocks of long lines, and slices of them."""
    specs = recognise_toeplitz(found.match, wanted.axes, wanted.node.dtype, found.outer, found.guards)
    if isinstance(specs, Refusal):
        return

    def candidate(form: str, spec: ToeplitzSpec) -> Candidate:
        source = partial(toeplitz_source, spec)
        return way(body, wanted, form, toeplitz_work(spec), spec.operands, partial(source, assign=body.step))

    matrices = [candidate(MATRIX, s) for s in specs if s.kind != OUT]
    yield min(matrices, key=lambda c: c.work.seconds(body.policy.rates))
    yield candidate(DIAGONALS, next(s for s in specs if s.kind == OUT))
    blocked = [b for b in map(blocks_of, specs) if isinstance(b, Blocks)]
    if blocked:
        own = min(blocked, key=lambda b: b.zeros)
        source = partial(blocks_source, own, assign=body.step)
        yield way(body, wanted, BLOCKS, blocks_work(own), own.spec.operands, source)
    both = [b for b in map(two_matrices_of, specs) if isinstance(b, TwoMatrices)]
    if both:
        two = min(both, key=lambda b: b.copied)
        source = partial(two_matrices_source, two, assign=body.step)
        yield way(body, wanted, TWO_MATRICES, two_matrices_work(two), two.spec.operands, source)
    sliced = next((s for s in map(line_slices_of, specs) if isinstance(s, LineSlices)), None)
    if sliced is not None:
        source = partial(line_slices_source, sliced, assign=body.step)
        yield way(body, wanted, SLICES, line_slices_work(sliced), sliced.spec.operands, source)


def toeplitz_work(spec: ToeplitzSpec) -> Work:
    """A dense product over rows and columns, counted from its nodes, which reads the matrix as it goes.

    The matrix is written, and where it is the result, added up. Its elements are stated: how many of them XLA writes to memory, and how
    many it makes in the loop that reads them, was measured.
    """
    roles = {LHS: spec.lhs_roles, OUT: spec.out}.get(spec.kind, spec.rhs_roles)
    entries, laid_out = (spec.rows.extent * own for own in (spec.columns.extent, row_length(spec)))
    # rows of the line are repeated in the same loop that takes the columns of them; a product with zeros exists as it is
    written = laid_out if spec.kind == OUT else max(entries, laid_out // 2)
    matrix = float(written * prod(int(a.extent) for a in axes_in(roles)))
    dry = Dry()
    made = list(dry.roots(toeplitz_source(spec, on_names(spec.operands), dry)))
    flops = total_flops(made, extent_of, Einsum)
    again = total_reordered(made, extent_of) + sum(_transposed(own) for own in (spec.lhs, spec.rhs))
    width = dtypes.width(spec.lhs.dtype)
    own = Work(
        dot=flops * (1 + NARROW / _narrowest(spec)),
        stream=width * (matrix + 2.0 * again),
        kernel=spec.groups + 1,
        temporaries=width * matrix,
    )
    return own + Work(tap=matrix) if spec.kind == OUT else own


def _transposed(operand: Array) -> int:
    """The elements of an operand whose axes are in another order than in what it reads."""
    there = [a for a in order_of_reads(operand.body, ()) if among(a, operand.axes)]
    here = [a for a in operand.axes if among(a, there)]
    return 0 if identical(here, there) else points(operand.axes)


def _narrowest(spec: ToeplitzSpec) -> int:
    """The least extent of the matrix product that is more than 1: of what is summed, or in one operand only."""
    out, lhs, rhs = _named(spec)
    sizes: dict[str | Axis, int] = {spec.rows.name: spec.rows.extent, spec.columns.name: spec.columns.extent}
    sizes.update(spec.extents.items())
    parts = [(lhs & rhs) - out, (lhs & out) - rhs, (rhs & out) - lhs]
    return min((n for part in parts if (n := prod(sizes[r] for r in part)) > 1), default=NARROW)


def _named(spec: ToeplitzSpec) -> tuple[set[str | Axis], set[str | Axis], set[str | Axis]]:
    """The dimensions of the result and of the operands as the matrix product has them."""
    here = {spec.rows.name, spec.columns.name}
    own = [set(spec.out), set(spec.lhs_roles), set(spec.rhs_roles)]
    own[{OUT: 0, LHS: 1}.get(spec.kind, 2)] |= here
    out, lhs, rhs = ({r for r in roles if isinstance(r, Axis) or r in here} for roles in own)
    return out, lhs, rhs


FOURIER = "Fourier transform"
_CAUTION = "rounds relative to the largest result, and an inf or nan anywhere is nan everywhere"


def fourier_candidates(body: Body, found: Matched, wanted: Wanted) -> Iterator[Candidate]:
    """The product of transforms, where operands and result are long."""
    axes, node = wanted.axes, wanted.node
    windows = fourier_windows(found.match, node.dtype)
    if isinstance(windows, Refusal):
        return

    def write(windows: list[Window] = windows) -> Search:
        spec = fourier_spec(found.match, windows, axes, node.dtype, found.outer, found.guards)
        operands = yield from operands_of(body, spec.operands, wanted.scope)
        body.report.note(FOURIER)
        return Value(fourier_source(spec, operands, body.step), axes, (node.dtype, False))

    yield Candidate(FOURIER, _fourier_work(found, windows), write, _CAUTION)


def _fourier_work(found: Matched, windows: list[Window]) -> Work:
    """Three transforms of every sequence that there is, and the product of complex numbers.

    Stated: the nodes are made where the form is written, since it is taken only by name or as measured. A transform does eight times the
    time of a matrix product with as many operations (measured).
    """
    match, spatial = found.match, frozenset(a for w in windows for a in (w.spatial.t, w.spatial.z))
    others = [a for own in match.outputs for a in own if a not in spatial]
    reduced = [a for a in match.reduced if a not in spatial]
    count = points_of(windows)
    sequences = (
        points(a for a in (*others, *reduced) if a in match.lhs.axes)
        + points(a for a in (*others, *reduced) if a in match.rhs.axes)
        + points(others)
    )
    transforms = 2.5 * count * log2(count) * sequences
    product = 4.0 * count * points((*others, *reduced))
    return Work(dot=8 * transforms + product, stream=16.0 * count * sequences, kernel=6)

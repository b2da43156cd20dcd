"""The forms of a convolution by a matrix that is constant along its diagonals, by blocks of one, or by Fourier transforms, with what each costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import log2, prod

from jaxte.lang import dtypes
from jaxte.lang.expr import Axis
from jaxte.lang.graphs import among, identical
from jaxte.lower.arrays.counts import total_flops, total_reordered
from jaxte.lower.arrays.products import Einsum
from jaxte.lower.body.candidates import Candidate, Search
from jaxte.lower.body.evaluator import Body
from jaxte.lower.body.wanted import Wanted, operands_of, way
from jaxte.lower.code.spec import Array, Dry, Refusal, on_names
from jaxte.lower.code.vocabulary import Value
from jaxte.lower.cost.default_work import NARROW
from jaxte.lower.cost.work import Work, points
from jaxte.lower.forms.conv.lines.blocks import Blocks, blocks_of, blocks_source, blocks_work
from jaxte.lower.forms.conv.lines.fourier import fourier_source, fourier_spec, fourier_windows, points_of
from jaxte.lower.forms.conv.lines.roles import axes_in
from jaxte.lower.forms.conv.lines.slices import (
    LineSlices,
    line_slices_of,
    line_slices_source,
    line_slices_work,
)
from jaxte.lower.forms.conv.lines.toeplitz import LHS, OUT, ToeplitzSpec, order_of_reads, recognise_toeplitz
from jaxte.lower.forms.conv.lines.write_toeplitz import row_length, toeplitz_source
from jaxte.lower.forms.conv.recognise import Matched
from jaxte.lower.forms.conv.spec import Window
from jaxte.sets.intervals import extent_of

MATRIX = "Toeplitz matrix"
DIAGONALS = "sums along diagonals"
BLOCKS = "products of blocks"
SLICES = "slices of a line"


def toeplitz_candidates(body: Body, found: Matched, wanted: Wanted) -> Iterator[Candidate]:
    """The matrix of the operand for which it takes less, the product summed along its diagonals, blocks of long lines, and slices of them."""
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
    sliced = next((s for s in map(line_slices_of, specs) if isinstance(s, LineSlices)), None)
    if sliced is not None:
        source = partial(line_slices_source, sliced, assign=body.step)
        yield way(body, wanted, SLICES, line_slices_work(sliced), sliced.spec.operands, source)


def toeplitz_work(spec: ToeplitzSpec) -> Work:
    """A dense product over rows and columns, counted from its nodes, which reads the matrix as it goes.

    The matrix is written, and where it is the result, added up. Its elements are stated: how many of them XLA writes to memory, and how
    many it makes in the loop that reads them, was measured.
    """
    roles = {
        LHS: spec.lhs_roles,
        OUT: spec.out,
    }.get(spec.kind, spec.rhs_roles)
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

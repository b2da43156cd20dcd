"""The forms of a cumulative reduction, with what each costs.

- scan: ``jnp.cumsum`` and its like, which XLA computes in a logarithmic number of passes, on a CPU of many small loops each;
- associative scan: ``lax.associative_scan``, the same by slices of whole arrays, for reducers whose steps hand on several values: of one value a blocked scan
  takes 0.6 times as long on a TPU by its compiler's model;
- sequential scan: ``lax.scan`` over the axis, one pass and one step for each position. A CPU runs such a loop at the speed of
  its memory; a GPU starts kernels in every step;
- blocked scan: a function that reduces blocks of four positions and calls itself for what they come to. No step waits for the one
  before it, and nothing is moved: on a CPU as fast as products with triangles, without their zeros times infinity;
- prefix written out: of a few positions, each chosen where it counts, in one loop over the result: on a CPU 0.25 ns for each element of axes of three to
  twelve, 0.3 to 0.9 in blocks, 0.3 to 2 by ``jnp.cumsum``, and 16 along the first of three axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import log2, prod

from jaxte.lang.dtypes import is_inexact
from jaxte.lang.limits import MOST_LARGER, MOST_TERMS, NARROW, SMALLEST
from jaxte.lower.arrays.elementwise import Kept
from jaxte.lower.arrays.node import Node
from jaxte.lower.arrays.products import OPS
from jaxte.lower.body.candidates import Candidate, Wanted, way
from jaxte.lower.body.evaluator import Body
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work, expensive_calls
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.lower.forms.scan.write import (
    Run,
    associative,
    carried_values,
    cumulative,
    has_cumulative,
    in_blocks,
    prefix_function,
    scan_source,
    sequential,
    step_function,
    written_out,
)
from jaxte.sets.intervals import extent_of, known

SCAN = "scan"
ASSOCIATIVE = "associative scan"
SEQUENTIAL = "sequential scan"
BLOCKED = "blocked scan"
WRITTEN = "prefix written out"
_MOST_STEPS = 256  # of a sum, whose rounding errors add up: to some seven units in the last place of the largest, beside two of jnp.cumsum


def scan_candidates(body: Body, spec: ScanSpec, wanted: Wanted) -> Iterator[Candidate]:
    """The ways to run through the axes of ``spec``, the library's own first."""

    def in_steps(spec: ScanSpec, scan: Scan, values: Sequence[Node]) -> Node:
        step = step_function(spec, scan, values, body.label, body.names.new(f"{body.target}_step"))
        body.add(step)
        return sequential(spec, scan, values, step.name)

    def blockwise(spec: ScanSpec, scan: Scan, values: Sequence[Node]) -> Node:
        name = body.names.new(f"{body.target}_{'suffix' if scan.reverse else 'prefix'}")
        body.add(prefix_function(spec, scan, values, body.label, name))
        if expensive_calls([a.body for a in spec.arrays]):  # else each would be computed some six times
            values = [Kept(v, "apart" if body.policy.facts.drops_barriers else "barrier") for v in values]
        return in_blocks(spec, values, name)

    def position_by_position(spec: ScanSpec, scan: Scan, values: Sequence[Node]) -> Node:
        own = values[0]
        # else each would be computed for all that are behind it
        if expensive_calls([spec.arrays[0].body]) or scan is not spec.scans[0]:
            own = Kept(own, "apart" if body.policy.facts.drops_barriers else "barrier")
        return written_out(body, spec, scan, own)

    def candidate(form: str, run: Run) -> Candidate:
        return way(
            body,
            wanted,
            form,
            scan_work(spec, form, body.policy.facts),
            spec.operands,
            partial(scan_source, spec, run=run),
        )

    if has_cumulative(spec.reducer):
        yield candidate(SCAN, cumulative)
    shape = spec.arrays[0].shape
    if has_cumulative(spec.reducer) and all(map(known, shape)) and prod(map(extent_of, shape)) <= NARROW:
        return  # of so few elements the shortest text takes no longer
    halves = all(known(shape[scan.axis]) is not None for scan in spec.scans)
    if halves and not has_blocks(spec):  # halves, which jax.export does not take of symbolic sizes
        yield candidate(ASSOCIATIVE, associative)
    yield replace(candidate(SEQUENTIAL, in_steps), caution=_rounding(spec))
    if halves and has_blocks(spec):
        yield candidate(BLOCKED, blockwise)
    if spec.reducer.name in OPS and all(
        (known(shape[s.axis]) or MOST_TERMS + 1) <= MOST_TERMS for s in spec.scans
    ):
        yield candidate(WRITTEN, position_by_position)


def _rounding(spec: ScanSpec) -> str:
    """Why a long sum is not taken step by step: each step rounds all that was added so far, blocks round it once for each level."""
    shape = [extent_of(e) for e in spec.arrays[0].shape]
    longest = max(shape[scan.axis] for scan in spec.scans)
    adds = spec.reducer.is_sum and is_inexact(spec.arrays[0].body.dtype)
    if not adds or longest <= _MOST_STEPS or not has_blocks(spec):
        return ""
    return f"a sum of {longest} terms, one after the other, loses digits that sums of sums keep"


def has_blocks(spec: ScanSpec) -> bool:
    """Whether the steps hand on one value, the one that is asked for."""
    return all(len(carried_values(spec, scan)) == 1 for scan in spec.scans)


def scan_work(spec: ScanSpec, form: str, facts: Platform) -> Work:
    """What a form does, as it was measured.

    Not counted from nodes: all forms combine every element once, and differ in the passes that XLA makes of them, in its kernels, and in
    the loops inside of ``lax.associative_scan`` and ``jnp.cumsum``, none of which a node says.
    """
    shape = [extent_of(e) for e in spec.arrays[0].shape]
    arity = spec.reducer.arity
    total = Work()
    for scan in spec.scans:
        length, points = shape[scan.axis], prod(shape)
        wide = prod(shape[scan.axis + 1 :]) > facts.line  # so that whole vectors are combined
        if form == SCAN:
            own = Work(scan=1.6 * points * arity, kernel=facts.cumulative_call)
        elif form == ASSOCIATIVE:
            own = Work(scan=0.6 * points * arity, kernel=2 * log2(length + 1))
        elif form == WRITTEN:
            own = Work(tap=length * points, stream=8 * points, kernel=1)
        elif form == BLOCKED:
            read = (2 * arity + 1) * 4 * points  # twice, and the result
            own = Work(
                scan=(0.02 if wide else 0.1) * points * arity,
                stream=read if wide else 1.7 * read,
                kernel=4 + log2(length + 1),
            )
        else:
            moved = scan.axis > 0 and points // max(1, length) > facts.line
            stream = (16 * arity + 8) * points if moved else 8 * points * arity
            if moved and length > SMALLEST:  # each element of a column lies in a page of its own
                stream *= MOST_LARGER
            steps = facts.wide_step * length if wide else length
            own = Work(scan=0.05 * points * arity, step=steps, stream=stream, kernel=facts.scan_call)
        total = total + own
    return total

"""The forms of a cumulative reduction, with what each costs.

- scan: ``jnp.cumsum`` and its like, which XLA computes in a logarithmic number of passes;
- associative scan: ``lax.associative_scan``, the same by slices of whole arrays; the only one beside the next for reducers
  that have no cumulative function;
- sequential scan: ``lax.scan`` over the axis, one pass and one step for each position. A CPU runs such a loop at the speed of
  its memory; a GPU starts kernels in every step;
- blocked scan: a function that reduces blocks of four positions and calls itself for what they come to. No step waits for the one
  before it, and nothing is moved: on a CPU as fast as products with triangles, without their zeros times infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import log2, prod

from jaxte.lang.dtypes import is_inexact
from jaxte.lower.arrays.elementwise import Kept
from jaxte.lower.arrays.node import Node
from jaxte.lower.body.candidates import Candidate, Wanted, way
from jaxte.lower.body.evaluator import Body
from jaxte.lower.cost.platforms import Platform
from jaxte.lower.cost.work import Work, expensive_calls
from jaxte.lower.forms.scan.recognise import Scan, ScanSpec
from jaxte.lower.forms.scan.write import (
    Run,
    associative,
    cumulative,
    has_blocks,
    has_cumulative,
    in_blocks,
    prefix_function,
    scan_source,
    sequential,
    step_function,
)
from jaxte.sets.intervals import extent_of, known

SCAN, ASSOCIATIVE = "scan", "associative scan"
SEQUENTIAL, BLOCKED = "sequential scan", "blocked scan"
_MOST_STEPS = 64  # of a sum, whose rounding errors add up: some four units in the last place


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

    def candidate(form: str, run: Run) -> Candidate:
        return way(
            body,
            wanted,
            form,
            _work(spec, form, body.policy.facts),
            spec.operands,
            partial(scan_source, spec, run=run),
        )

    if has_cumulative(spec.reducer):
        yield candidate(SCAN, cumulative)
    shape = spec.arrays[0].shape
    halves = all(known(shape[scan.axis]) is not None for scan in spec.scans)
    if halves:  # which jax.export does not take of symbolic sizes
        yield candidate(ASSOCIATIVE, associative)
    yield replace(candidate(SEQUENTIAL, in_steps), caution=_rounding(spec))
    if halves and has_blocks(spec):
        yield candidate(BLOCKED, blockwise)


def _rounding(spec: ScanSpec) -> str:
    """Why a long sum is not taken step by step: each step rounds all that was added so far, blocks round it once for each level."""
    shape = [extent_of(e) for e in spec.arrays[0].shape]
    longest = max(shape[scan.axis] for scan in spec.scans)
    adds = spec.reducer.name == "sum" and is_inexact(spec.arrays[0].body.dtype)
    if not adds or longest <= _MOST_STEPS or not has_blocks(spec):
        return ""
    return f"a sum of {longest} terms, one after the other, loses digits that sums of sums keep"


def _work(spec: ScanSpec, form: str, facts: Platform) -> Work:
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
            own = Work(scan=points * arity, kernel=2)
        elif form == ASSOCIATIVE:
            own = Work(scan=0.6 * points * arity, kernel=2 * log2(length + 1))
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
            steps = facts.wide_step * length if wide else length
            own = Work(scan=0.15 * points * arity, step=steps, stream=stream, kernel=6)
        total = total + own
    return total

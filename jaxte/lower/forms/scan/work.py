"""What each form of a cumulative reduction does, by which the fastest is chosen."""

from __future__ import annotations

from math import log2, prod

from jaxte.lang.limits import MOST_LARGER, SMALLEST
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work
from jaxte.lower.forms.scan.recognise import ScanSpec
from jaxte.sets.intervals import extent_of

SCAN, ASSOCIATIVE = "scan", "associative scan"
SEQUENTIAL, BLOCKED = "sequential scan", "blocked scan"
WRITTEN = "prefix written out"


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

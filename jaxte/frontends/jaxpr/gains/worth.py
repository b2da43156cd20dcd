"""Whether a region of shifts is worth raising: how many reads of an element there are, and what reads them.

Functions of differences of neighbours along several axes (Huber's, clipped or saturated ones, in priors of images and fields) are dear: what flows back to
the array is one pad for each slice of it. XLA fuses the function's slope with each of these pads, and where there are several, its loop tests each
element and uses no vectors. In index notation the slopes are an array, which slices of it are added from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import OWN_DERIVATIVES, Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.gains import DEAR, MOVES, SHIFTS, gain_of, strong
from jaxte.frontends.jaxpr.gains.shifts import is_view
from jaxte.frontends.jaxpr.gains.sums import chooses_of_many, elements, is_pairwise
from jaxte.lang.dtypes import is_inexact, width
from jaxte.lang.limits import AGAIN, FEW, MANY_ELEMENTS, MANY_OPERATIONS, MARGIN
from jaxte.lower.cost.platform import Platform
from jaxte.lower.cost.work import Work

_IN_PLACE = ("scatter-add", "scatter-sub")


def worth(steps: Sequence[Step], looped: bool = False) -> bool:
    """Whether a region of ``steps``, which may be ``looped``, is raised.

    A stencil, which is shifts and sums of them, gains where shifts follow each other: XLA fuses JAX's transposes, pads that are
    added, into one loop. Each element is computed once more for every way along which it is read, which is right for few ways.
    Where a function that is dear is taken of most of what is shifted, it takes the time, and little is gained; of many reads
    something is if they go around the ends, since those within guards are computed again for their adjoints. Extrema over pairs
    are found again by comparing, which takes what is gained. Differences of neighbours that are squared one by one have nothing to be added,
    but where they are of points or colours; of other functions of differences the price decides.

    In the body of a loop what is added to in place is a state, which exists: no element of it is computed again by what reads it, and its
    cotangent flows on as it is, without a pad. Shifts of it begin a chain of their own, and the longest chain counts.
    """
    if any(gain_of(s) and strong(s) and s.name != "sub" for s in steps):
        return True
    if any(is_pairwise(s) for s in steps):
        return not any(chooses_of_many(s) for s in steps)
    if in_short_rows(steps):
        return True
    found = levels(steps)
    dear = sum(s.name in DEAR for s in steps)
    # Shifted reads in one sum, below which a single level of them is as good in JAX: differences, squared.
    if len(found) == 1 and most_of_one(steps) < MANY_OPERATIONS and widest(steps) < FEW:
        return slopes_are_dear(steps, most_of_one(steps), planned_facts())
    if len(found) == 1 and 3 * dear >= sum(found) and (found[0] < MANY_OPERATIONS or not _goes_around(steps)):
        return False
    reads = max(map(prod, _chains(steps))) if looped else prod(found)
    # Times that an element of a stencil is computed again, up to which XLA does well with JAX's transposes.
    return reads + _ends(steps) >= AGAIN


def _ends(steps: Sequence[Step]) -> int:
    """How many parts go on with an array beside it (its ends repeated, mirrored, or those of the other side): JAX's transposes add what flows
    back to each of them in one more loop.
    """
    joined = [step.inputs for step in steps if step.name == "concatenate" and gain_of(step)]
    return sum(len(parts) - 1 for parts in joined if any(all(is_view(p, of=w) for p in parts) for w in parts))


def _chains(steps: Sequence[Step]) -> list[list[int]]:
    """Levels of the chains of shifts between arrays that are added to in place."""
    chain: dict[Slot, int] = {}
    for step in steps:
        own = max((chain.get(s, 0) for s in step.inputs), default=0) + (step.name in _IN_PLACE)
        chain.update(dict.fromkeys(step.outputs, own))
    parts: dict[int, list[Step]] = {}
    for step in steps:
        if step.name not in _IN_PLACE:
            parts.setdefault(max((chain[s] for s in step.outputs), default=0), []).append(step)
    return [levels(part) for part in parts.values()] or [[]]


def _goes_around(steps: Sequence[Step]) -> bool:
    """Whether what is shifted goes around the end of an axis."""
    return any(s.name == "concatenate" and gain_of(s) for s in steps)


def in_short_rows(steps: Sequence[Step]) -> bool:
    """Whether many rows of a few numbers are shifted, points or colours, along the axis beside: XLA's loops over pads of these test each number."""
    shifted = [s for s in steps if s.name == "slice" and gain_of(s)]
    sources = [s.inputs[0].shape for s in shifted]
    # Numbers in a row of which a loop over pads tests each one, and in all rows together, with fewer of which that takes no time.
    if any(len(shape) < 2 or not 1 < shape[-1] <= FEW for shape in sources):
        return False
    parts = [s.outputs[0].shape for s in shifted]
    beside = any(part[-2] < shape[-2] for part, shape in zip(parts, sources, strict=True))
    whole = all(part[-1] == shape[-1] for part, shape in zip(parts, sources, strict=True))
    # Numbers in a row of which a loop over pads tests each one, and in all rows together, with fewer of which that takes no time.
    return beside and whole and max(map(prod, sources)) >= MANY_ELEMENTS


def widest(steps: Sequence[Step]) -> int:
    """How many shifted reads are added before something nonlinear reads them: two in a difference, four in a Laplacian."""
    reads: dict[Slot, int] = {}
    for step in steps:
        found = [reads.get(s, 0) for s in step.inputs]
        if step.name in SHIFTS and gain_of(step):
            count = max(1, *found)
        elif step.name in ("add", "sub", "add_any"):
            count = sum(found)
        else:
            count = max(found, default=0) if step.reads_linearly else 0
        reads.update(dict.fromkeys(step.outputs, count))
    return max(reads.values(), default=0)


def levels(steps: Sequence[Step]) -> list[int]:
    """How many reads of an element there are at each level of a chain of shifts; shifts of shifts are one level."""
    return [len(set().union(*own.values())) for own in _shifts(steps)]


def most_of_one(steps: Sequence[Step]) -> int:
    """The same for the array of which there are most at one level."""
    return max((len(read) for own in _shifts(steps) for read in own.values()), default=0)


def _shifts(steps: Sequence[Step]) -> list[dict[Slot, set[object]]]:
    """For each level, the reads of each array."""
    level: dict[Slot, int] = {}
    source: dict[Slot, Slot] = {}
    shifts: dict[int, dict[Slot, set[object]]] = {}
    gain = cache(gain_of)  # of each step once: what reads an array reads others too
    for step in steps:
        before = max((level.get(s, 0) for s in step.inputs), default=0)
        shifted = bool(gain(step))
        moved = next((source[s] for s in step.inputs if s in source), None)
        again = moved is not None
        for slot in step.outputs:
            level[slot] = before + (shifted and not again)
            if shifted or (again and (step.name in MOVES or step.name in SHIFTS)):
                source[slot] = step.inputs[0] if moved is None else moved
        if shifted and step.name != "pad" and not (step.name == "concatenate" and again):
            own = step.inputs[0] if moved is None else moved
            read = shifts.setdefault(before - again, {}).setdefault(own, set())
            read.add(step)
            read.update(s for s in step.inputs if any(not gain(r) for r in s.readers))
    return list(shifts.values())


_DEAR = DEAR | {"sqrt", "rsqrt", "cbrt"}
_SAVED = 3  # cheap functions in the time that is left for a dear one, whose slope JAX keeps as an array
_LOOPS = 4  # more loops for each difference: its slopes, and the edges of what is added


def slopes_are_dear(steps: Sequence[Step], reads: int, facts: Platform) -> bool:
    """Whether the slopes of functions of shifted reads take longer in JAX's transposes, of which ``reads`` are of one array, than as arrays."""
    slices, rolls = (_shift_steps(steps, name) for name in ("slice", "concatenate"))
    shifted = rolls or slices
    if not shifted:
        return False
    size = max(elements(s.outputs[0]) for s in shifted)
    differences = len(rolls) if rolls else max(1, len(slices) // 2)
    functions = _functions(steps, {out for s in shifted for out in s.outputs}, size // 2) / differences
    item = width(shifted[0].outputs[0].dtype)
    as_it_is = Work(tap=reads * functions * size)
    raised = Work(tap=functions * size, stream=(2.5 if rolls else 2.0) * item * size, kernel=_LOOPS)
    return as_it_is.seconds(facts.rates) > MARGIN * raised.seconds(facts.rates)


def _shift_steps(steps: Sequence[Step], name: str) -> list[Step]:
    return [s for s in steps if s.name == name and gain_of(s)]


def _functions(steps: Sequence[Step], shifted: set[Slot], least: int) -> int:
    """Functions of what is ``shifted``, of at least so many elements, those that are dear subtracted: what flows back through others passes no pad."""
    own = list[Step]()
    for step in steps:
        if shifted.isdisjoint(step.inputs):
            continue
        functional = _is_elementwise(step) and is_inexact(step.outputs[0].dtype)
        if functional or step.name in (*MOVES, *SHIFTS):
            shifted.update(step.outputs)
        if functional and elements(step.outputs[0]) >= least:
            own.append(step)
    dear = sum(s.name in _DEAR for s in own)
    return max(0, len(own) - (1 + _SAVED) * dear)


def _is_elementwise(step: Step) -> bool:
    if step.name in OWN_DERIVATIVES:
        return True
    return (
        step.name in RULES
        and RULES[step.name].reads in (Reads.POINTWISE, Reads.LINEAR)
        and not step.name.startswith("broadcast")
        and step.name not in ("concatenate", "pad", "slice")
    )

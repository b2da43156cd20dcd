"""Shifts: parts of one array that overlap, and sums of such parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.sums import elements
from jaxte.lang.limits import FEW, LEVELS

Lines = tuple[range, ...]


def overlaps(step: Step) -> bool:
    """Whether another slice of the same array has elements of this one, and others; a part of a pad has zeros in common with others."""
    (source,) = step.inputs
    if source.origin is not None and source.origin.name == "pad":
        return True
    return _lines(step) in _meeting(source, len(source.readers))


@lru_cache(maxsize=32)  # asked for by each slice of an array, one after the other
def _meeting(source: Slot, readers: int) -> frozenset[Lines]:
    """The slices of ``source``, which has so many ``readers`` by now, that share elements with another one."""
    slices = list(dict.fromkeys(_lines(r) for r in source.readers if r.name == "slice"))
    if len(slices) < 2 or not slices[0]:
        return frozenset()
    axis = min(
        range(len(slices[0])), key=lambda d: sum(s[d].stop - s[d].start for s in slices) / source.shape[d]
    )
    slices.sort(key=lambda s: s[axis].start)
    found: set[Lines] = set()
    for n, first in enumerate(slices):
        for second in slices[n + 1 :]:
            if second[axis].start >= first[axis].stop:
                break
            if not (first in found and second in found) and _meet(first, second):
                found.update((first, second))
    return frozenset(found)


def _lines(step: Step) -> Lines:
    p = step.eqn.params
    steps = p["strides"] or (1,) * len(p["start_indices"])
    return tuple([range(*line) for line in zip(p["start_indices"], p["limit_indices"], steps, strict=True)])


def _meet(a: Sequence[range], b: Sequence[range]) -> bool:
    return all(
        max(x.start, y.start) < min(x.stop, y.stop) and (x.start - y.start) % gcd(x.step, y.step) == 0
        for x, y in zip(a, b, strict=True)
    )


_REDUCTIONS = ("reduce_max", "reduce_min", "reduce_sum")
_VIEWS = (
    *("slice", "concatenate", "pad", "rev"),
    *("transpose", "reshape", "broadcast_in_dim", "squeeze", "expand_dims"),
)


def reduces_shifts(step: Step) -> bool:
    """Whether ``step`` reduces along a stack of functions of slices of one array, of which it is the only reader, or the parts of one that are gathered."""
    if step.name not in _REDUCTIONS:
        return False
    (slot,) = step.inputs
    stack = slot.origin
    if stack is not None and stack.name == "gather":
        return _gathers_along(stack, step.eqn.params["axes"])
    if stack is None or stack.name not in ("stack", "concatenate") or len(slot.readers) > 1:
        return False
    params = stack.eqn.params
    axis = params["axis" if stack.name == "stack" else "dimension"] % len(slot.shape)
    # A stack of fewer parts is soon written.
    if axis not in step.eqn.params["axes"] or len(stack.inputs) < FEW:
        return False
    if stack.name == "concatenate" and any(part.shape[axis] != 1 for part in stack.inputs):
        return False
    sources = [_sources(part) for part in stack.inputs]
    shared = set(sources[0]).intersection(*sources)
    return any(2 * sum(own[source] for own in sources) > len(sources) for source in shared)


def _gathers_along(gather: Step, axes: Sequence[int]) -> bool:
    """Whether the parts that a gather takes at known positions lie side by side along one of ``axes``."""
    offsets = gather.eqn.params["dimension_numbers"].offset_dims
    return gather.inputs[1].known is not None and any(d not in offsets for d in axes)


def is_view(slot: Slot, of: Slot) -> bool:
    """Whether ``slot`` is an array, or a view of it."""
    while slot is not of and slot.origin is not None and slot.origin.name in _VIEWS:
        slot = slot.origin.inputs[0]
    return slot is of


def _sources(part: Slot) -> dict[Slot, bool]:
    """The arrays whose elements ``part`` is a function of, and whether it is of a view of them; numbers beside them, and ends of them, are none."""
    found: dict[Slot, bool] = {}
    stack, between = [(part, False)], 0
    while stack:
        slot, moved = stack.pop()
        step = slot.origin
        if 2 * elements(slot) <= elements(part):
            continue
        if step is not None and step.name in _VIEWS:
            stack.append((max(step.inputs, key=elements), True))
        # Functions between a stack and what is shifted.
        elif step is not None and between < LEVELS and _is_of_elements(step):
            between += 1
            stack += [(s, moved) for s in step.inputs if s.known is None]
        else:
            found[slot] = found.get(slot, False) or moved
    return found


def _is_of_elements(step: Step) -> bool:
    """Whether ``step`` makes a function of single elements of what it reads."""
    rule = RULES.get(step.name)
    return len(step.outputs) == 1 and rule is not None and rule.reads in (Reads.POINTWISE, Reads.LINEAR)

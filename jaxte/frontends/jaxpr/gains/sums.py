"""Sums of an array that read or make its elements twice: beside single elements of it, of shifted parts of it, or of elements that are repeated.

What flows back to an array whose sum and single elements are added (the trapezoidal rule, Simpson's) is one number along the axis of the sum, with others
at a few places. JAX pads what flows back into each part. Elements that are repeated are computed once, and counted.

Slices of one array that have elements in common, and reductions along stacks of them: windows, which JAX lays out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import gcd

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.pairs import elements

_ADDS = ("add", "sub", "add_any")
_SCALES = ("mul", "div", "neg")
_MOST_STEPS = 32  # additions and scalings that are followed from one sum
_LEAST = 1 << 13  # elements of the array, of fewer of which a sum takes no time


def sums_beside_ends(step: Step) -> bool:
    """Whether ``step`` sums a large array of which else only some single elements along the axis of the sum are read; one is as good in JAX."""
    if step.name != "reduce_sum" or elements(step.inputs[0]) < _LEAST or step.outputs[0].shape == ():
        return False
    source, axes = step.inputs[0], step.eqn.params["axes"]
    others = [reader for reader in source.readers if reader is not step]
    return len(others) > 1 and all(
        r.name == "slice" and all(r.outputs[0].shape[d] == 1 for d in axes) for r in others
    )


def sums_shifts(step: Step) -> bool:
    """Whether ``step`` sums several parts of one large array, shifted along what it sums over, strided or with weights that are known."""
    if step.name != "reduce_sum":
        return False
    weights: list[Slot] = []
    parts = list(_parts(step.inputs[0], weights))
    if len(parts) < 2 or any(part is None or part.name != "slice" for part in parts):
        return False
    slices = [part for part in parts if part is not None]
    source = slices[0].inputs[0]
    if any(s.inputs[0] is not source for s in slices) or elements(source) < _LEAST:
        return False
    weighted = any(np.size(w.known) > 1 for w in weights)
    if not weighted and not any(max(s.eqn.params["strides"] or (1,)) > 1 for s in slices):
        return False
    return any(slices[0].outputs[0].shape[d] < source.shape[d] for d in step.eqn.params["axes"])


def _parts(slot: Slot, weights: list[Slot]) -> Iterator[Step | None]:
    """The steps of which ``slot`` is a sum with ``weights`` that are known; None where something else is added."""
    stack = [slot]
    for _ in range(_MOST_STEPS):
        if not stack:
            return
        step = stack.pop().origin
        moving = [] if step is None else [s for s in step.inputs if s.known is None]
        wanted = 0 if step is None else 2 if step.name in _ADDS else 1 if step.name in _SCALES else 0
        if step is not None and len(moving) == wanted > 0:
            stack += moving
            weights += [s for s in step.inputs if s.known is not None]
        else:
            yield step
    yield None


_MOVES = ("broadcast_in_dim", "reshape", "copy")
_MOST_READERS = 16  # of one array, each of which is asked


def is_counted(slot: Slot) -> bool:
    """Whether all that is made of ``slot`` are functions of its single elements, numbers beside them, summed to one number."""
    family, stack, summed = {slot}, [slot], False
    while stack:
        for step in stack.pop().readers:
            if step.name == "reduce_sum" and step.outputs[0].shape == ():
                summed = True
                continue
            if len(family) > _MOST_READERS or not _stays(step, family):
                return False
            if step.outputs[0] not in family:
                family.add(step.outputs[0])
                stack.append(step.outputs[0])
    return summed


def _stays(step: Step, family: set[Slot]) -> bool:
    """Whether ``step`` makes functions of single elements of ``family``, or moves them."""
    rule = RULES.get(step.name)
    if len(step.outputs) != 1 or rule is None:
        return False
    if step.name in _MOVES:
        return True
    others = [s for s in step.inputs if s not in family and (s.known is None or np.size(s.known) != 1)]
    return not others and rule.reads in (Reads.POINTWISE, Reads.LINEAR)


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
_FEWEST = 4  # parts; of fewer, the stack is soon written


_MOST_BETWEEN = 8  # functions between a stack and what is shifted


def reduces_shifts(step: Step) -> bool:
    """Whether ``step`` reduces along a stack of functions of slices of one array, of which it is the only reader."""
    if step.name not in _REDUCTIONS:
        return False
    (slot,) = step.inputs
    stack = slot.origin
    if stack is None or stack.name not in ("stack", "concatenate") or len(slot.readers) > 1:
        return False
    params = stack.eqn.params
    axis = params["axis" if stack.name == "stack" else "dimension"] % len(slot.shape)
    if axis not in step.eqn.params["axes"] or len(stack.inputs) < _FEWEST:
        return False
    if stack.name == "concatenate" and any(part.shape[axis] != 1 for part in stack.inputs):
        return False
    sources = [_sources(part) for part in stack.inputs]
    shared = set(sources[0]).intersection(*sources)
    return any(2 * sum(own[source] for own in sources) > len(sources) for source in shared)


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
        elif step is not None and between < _MOST_BETWEEN and _is_of_elements(step):
            between += 1
            stack += [(s, moved) for s in step.inputs if s.known is None]
        else:
            found[slot] = found.get(slot, False) or moved
    return found


def _is_of_elements(step: Step) -> bool:
    """Whether ``step`` makes a function of single elements of what it reads."""
    rule = RULES.get(step.name)
    return len(step.outputs) == 1 and rule is not None and rule.reads in (Reads.POINTWISE, Reads.LINEAR)

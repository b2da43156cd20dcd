"""Slices of one array that have elements in common, and reductions along stacks of them: windows, which JAX lays out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from jaxte.frontends.jaxpr.equations.steps import Slot, Step

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
    return tuple(range(*line) for line in zip(p["start_indices"], p["limit_indices"], steps, strict=True))


def _meet(a: Sequence[range], b: Sequence[range]) -> bool:
    return all(
        max(x.start, y.start) < min(x.stop, y.stop) and (x.start - y.start) % gcd(x.step, y.step) == 0
        for x, y in zip(a, b, strict=True)
    )


_REDUCTIONS = ("reduce_max", "reduce_min", "reduce_sum")
_VIEWS = ("slice", "concatenate", "pad", "transpose", "reshape", "broadcast_in_dim", "squeeze", "expand_dims")
_FEWEST = 4  # parts; of fewer, the stack is soon written


def reduces_shifts(step: Step) -> bool:
    """Whether ``step`` reduces along a stack of slices of one array, of which it is the only reader."""
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
    shifted = [part for part in stack.inputs if _source(part) is not part]
    return len({_source(part) for part in stack.inputs}) == 1 and 2 * len(shifted) > len(stack.inputs)


def _source(slot: Slot) -> Slot:
    """What ``slot`` is a view of."""
    while (step := slot.origin) is not None and step.name in _VIEWS:
        slot = step.inputs[0]
    return slot

"""Sums that gain by what they are sums of: elements that are read or made twice, and differences of all pairs of two arrays, which need not be kept.

What flows back to an array whose sum and single elements are added (the trapezoidal rule, Simpson's) is one number along the axis of the sum, with others
at a few places. JAX pads what flows back into each part. Elements that are repeated are computed once, and counted.

Slices of one array that have elements in common, and reductions along stacks of them: windows, which JAX lays out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import gcd, prod

import numpy as np

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.lang.dtypes import is_float, width
from jaxte.lang.limits import (
    CASES,
    FEW,
    FEWER,
    LEVELS,
    MANY_ELEMENTS,
    MANY_OPERATIONS,
    MOST_HELD,
    SMALLEST,
)

_SEVERAL = 1 << 15  # differences, with fewer of which both take some ten microseconds
_SMOOTH = frozenset(["integer_pow", "square", "mul", "div"])
_CHEAP = _SMOOTH | {"add", "sub", "neg", "abs", "max", "min"}
_EXTREMA = frozenset(["reduce_max", "reduce_min", "argmax", "argmin"])


def is_pairwise(step: Step) -> bool:
    """Whether ``step`` subtracts the elements of two arrays in all pairs, which are read twice or are too many to be held in a cache.

    Or are of points with a few coordinates, whose squares are added: JAX adds them in a loop for each pair, which uses no vectors. Fewer
    pairs that are squared once JAX holds at no cost, and of their absolute values there is no product of matrices.
    """
    if step.name != "sub" or not is_differentiated(step) or elements(step.outputs[0]) < SMALLEST:
        return False
    (out,) = step.outputs
    facts = planned_facts()
    if not facts.holds_pairs and elements(out) < facts.pairs:
        return False
    readers = list(dict.fromkeys(out.readers))
    if not _is_of_few_coordinates(out):
        if any(r.name not in _SMOOTH for r in readers):
            return False
        if len(readers) < 2 and elements(out) * width(out.dtype) < MOST_HELD and not _has_nearest_of_few(out):
            return False
    sources = [elements(before_broadcast(slot)) for slot in step.inputs]
    # Times that an element is repeated for its pairs, at least; of fewer, the pairs are hardly more than what is given.
    return all(FEWER * s <= elements(step.outputs[0]) and s > 1 for s in sources)


def _is_of_few_coordinates(slot: Slot) -> bool:
    """Whether what is made of differences of many pairs is a sum of a few cheap functions of them, such as squares."""
    if elements(slot) < _SEVERAL:
        return False
    # Functions of differences before they are added.
    for _ in range(FEW):
        if len(slot.readers) != 1:
            return False
        (step,) = slot.readers
        (out, *_) = step.outputs
        if step.name == "reduce_sum":
            # With so few coordinates of a point, squared distances are a loop over pairs.
            return elements(slot) <= FEW * elements(out)
        if step.name not in _CHEAP or out.shape != slot.shape:
            return False
        slot = out
    return False


def _has_nearest_of_few(slot: Slot) -> bool:
    """Whether what is made of ``slot`` are squared distances, of which the least or the largest of a few is taken."""
    while len(slot.readers) == 1:
        (step,) = slot.readers
        if step.name in _EXTREMA:
            return _chooses_of_few(step)
        if step.name not in _SMOOTH and step.name != "reduce_sum":
            return False
        (slot,) = step.outputs
    return False


def chooses_of_many(step: Step) -> bool:
    """Whether ``step`` is an extremum of so many elements that they are dear to be found again."""
    return step.name in _EXTREMA and not _chooses_of_few(step)


def _chooses_of_few(step: Step) -> bool:
    """Whether an extremum is that of a few elements, which are found again by comparing at little cost."""
    # So many are compared again at little cost.
    return elements(step.inputs[0]) <= MANY_OPERATIONS * elements(step.outputs[0])


def before_broadcast(slot: Slot) -> Slot:
    """The array that is repeated in ``slot``."""
    step = slot.origin
    while step is not None and step.name in ("broadcast_in_dim", "reshape"):
        slot = step.inputs[0]
        step = slot.origin
    return slot


def is_differentiated(step: Step) -> bool:
    """Whether something flows back through ``step``."""
    return any(map(is_float, [slot.dtype for slot in step.inputs if slot.known is None]))


def elements(slot: Slot) -> int:
    return prod(slot.shape)


_ADDS = ("add", "sub", "add_any")
_SCALES = ("mul", "div", "neg")


def sums_beside_ends(step: Step) -> bool:
    """Whether ``step`` sums a large array of which else only some single elements along the axis of the sum are read; one is as good in JAX."""
    # Elements of the array, of fewer of which a sum takes no time.
    if step.name != "reduce_sum" or elements(step.inputs[0]) < MANY_ELEMENTS or step.outputs[0].shape == ():
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
    if any(s.inputs[0] is not source for s in slices) or elements(source) < MANY_ELEMENTS:
        return False
    weighted = any(np.size(w.known) > 1 for w in weights)
    if not weighted and not any(max(s.eqn.params["strides"] or (1,)) > 1 for s in slices):
        return False
    return any(slices[0].outputs[0].shape[d] < source.shape[d] for d in step.eqn.params["axes"])


def _parts(slot: Slot, weights: list[Slot]) -> Iterator[Step | None]:
    """The steps of which ``slot`` is a sum with ``weights`` that are known; None where something else is added."""
    stack = [slot]
    # Additions and scalings that are followed from one sum.
    for _ in range(LEVELS):
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


def is_counted(slot: Slot) -> bool:
    """Whether all that is made of ``slot`` are functions of its single elements, numbers beside them, summed to one number."""
    family, stack, summed = {slot}, [slot], False
    while stack:
        for step in stack.pop().readers:
            if step.name == "reduce_sum" and step.outputs[0].shape == ():
                summed = True
                continue
            # Each reader of the array is asked.
            if len(family) > CASES or not _stays(step, family):
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

"""Sums that gain by what they are sums of: elements that are read or made twice, and differences of all pairs of two arrays, which need not be kept.

What flows back to an array whose sum and single elements are added (the trapezoidal rule, Simpson's) is one number along the axis of the sum, with others
at a few places. JAX pads what flows back into each part. Elements that are repeated are computed once, and counted.

Slices of one array that have elements in common, and reductions along stacks of them: windows, which JAX lays out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.lang.dtypes import is_float, is_inexact, width
from jaxte.lang.limits import CASES, FEW, FEWER, LEVELS, MANY_ELEMENTS, MANY_OPERATIONS, MOST_HELD, SMALLEST
from jaxte.lower.cost.paces import SIZES

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
    return any(map(is_inexact, [slot.dtype for slot in step.inputs if slot.known is None]))


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


def gain_of_wide_rows(steps: Sequence[Step]) -> str:
    """What one equation of ``steps`` gains where something in it, or in its transpose, is a sum of rows that are wider than XLA's library does well; empty where nothing does.

    Such a sum is made of what is the same for all of them, too, as learned positions are: what flows back to it is one.
    """
    if not planned_facts().copies_reduced_slices or not any(map(_sums_wide_rows, steps)):
        return ""
    return "a sum of wide rows, which are added one by one, or as a product"


def _sums_wide_rows(step: Step) -> bool:
    """Whether ``step`` adds rows that are too wide, or repeats one."""
    if len(step.outputs) != 1 or not is_differentiated(step):
        return False
    (out,) = step.outputs
    if step.name == "reduce_sum":
        (whole,) = step.inputs
        leading = tuple(sorted(step.eqn.params["axes"])) == tuple(range(len(whole.shape) - len(out.shape)))
        return leading and _is_wide(out, whole)
    rule = RULES.get(step.name)
    if rule is None or rule.reads not in (Reads.POINTWISE, Reads.LINEAR):
        return False
    moving = [s for s in step.inputs if s.known is None and is_float(s.dtype)]
    return any(_is_wide(s, out) and _is_repeated_in_front(s, step) for s in moving)


def _is_wide(row: Slot, whole: Slot) -> bool:
    """Whether an array is a row of ``whole``, and wide."""
    return row.dtype in ("float32", "float64") and SIZES.wide < elements(row) < elements(whole)


def _is_repeated_in_front(slot: Slot, step: Step) -> bool:
    """Whether what ``step`` makes has dimensions in front of those of an operand, along which this is the same."""
    out = step.outputs[0].shape
    if step.name == "broadcast_in_dim":
        into = step.eqn.params["broadcast_dimensions"]
        return slot.shape == out[len(out) - len(slot.shape) :] and tuple(into) == tuple(
            range(len(out) - len(into), len(out))
        )
    fixed = next((d for d, extent in enumerate(slot.shape) if extent != 1), len(out))
    return len(slot.shape) == len(out) and slot.shape[fixed:] == out[fixed:]

"""Differences of all pairs of two arrays: which gain when they are summed without being kept."""

from __future__ import annotations

from math import prod

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.lang.dtypes import is_float

SMALLEST = 1024  # elements below which nothing is to be gained
_FEW_CENTRES = 16  # elements for each that is chosen, which are compared again at little cost
_FEW_COORDINATES = 4  # of a point, with which squared distances are a loop over pairs
_SEVERAL = 1 << 15  # differences, with fewer of which both take some ten microseconds
_MANY = 1 << 21  # pairs that JAX should rather not hold
_SMOOTH = frozenset(["integer_pow", "square", "mul", "div"])
_CHEAP = _SMOOTH | {"add", "sub", "neg", "abs", "max", "min"}
_REPEATED = 4  # times that an element is repeated for its pairs, at least; of fewer, the pairs are hardly more than what is given
_MOST_CHEAP = 4  # functions of differences before they are added
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
        if len(readers) < 2 and elements(out) < _MANY and not _has_nearest_of_few(out):
            return False
    sources = [elements(before_broadcast(slot)) for slot in step.inputs]
    return all(_REPEATED * s <= elements(step.outputs[0]) and s > 1 for s in sources)


def _is_of_few_coordinates(slot: Slot) -> bool:
    """Whether what is made of differences of many pairs is a sum of a few cheap functions of them, such as squares."""
    if elements(slot) < _SEVERAL:
        return False
    for _ in range(_MOST_CHEAP):
        if len(slot.readers) != 1:
            return False
        (step,) = slot.readers
        (out, *_) = step.outputs
        if step.name == "reduce_sum":
            return elements(slot) <= _FEW_COORDINATES * elements(out)
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
    return elements(step.inputs[0]) <= _FEW_CENTRES * elements(step.outputs[0])


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

"""Functions of an element and one of its neighbours, of which there are many and which are added up: one expression each.

What is made of ``x[i]`` and ``x[i + s]`` by anything nonlinear is a tensor otherwise, since its slopes would be computed again wherever it is read.
Where only sums read it, its slopes are computed twice, at ``i`` and at ``i - s``, which costs less than the arrays of many such functions: a weight
``exp(-(x[i] - x[i + s])**2)`` for each of 24 neighbours. The sum of all of them is one tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.equations.table import RULES, Reads
from jaxte.frontends.jaxpr.gains.gains import MOVES, SHIFTS

_MANY = 6  # neighbours of one array, from which on arrays for each of them cost more than slopes that are computed twice
_SUMS = frozenset(["add", "sub", "add_any"])

_MOST = 3  # arrays that such a function reads: a weight of two, times a third one
Pair = frozenset[Slot]


@dataclass(frozen=True)
class Neighbours:
    """What a list of steps computes of elements and their neighbours.

    Attributes:
        paired: functions of two arrays at most, one of them shifted, that sums and such functions alone read; and the shifted arrays.
        summed: what adds them up.
    """

    paired: frozenset[Slot] = frozenset()
    summed: frozenset[Slot] = frozenset()


def neighbours(steps: Sequence[Step], results: Sequence[Slot]) -> Neighbours:
    """The functions of pairs in ``steps``, none of which is among the ``results`` or read by anything but sums.

    Args:
        steps: in order.
        results: what is needed as an array.
    """
    views = _shifted(steps)
    if not views:
        return Neighbours()
    pairs = _pairs(steps, views)
    kept = _kept(pairs, results)
    paired = {slot for slot, own in pairs.items() if own not in kept}
    paired |= {v for v in views if v not in results and all(r.outputs[0] in paired for r in v.readers)}
    summed: set[Slot] = set()
    for step in steps:
        if step.name in _SUMS and any(s in paired or s in summed for s in step.inputs):
            summed.update(s for s in step.outputs if s not in paired)
    return Neighbours(frozenset(paired), frozenset(summed))


def _kept(pairs: dict[Slot, Pair], results: Sequence[Slot]) -> set[Pair]:
    """The pairs of which a function is a result, or is read by anything but sums and other functions of the pair."""
    kept = {pairs[slot] for slot in results if slot in pairs}
    for slot, own in reversed(pairs.items()):
        for reader in slot.readers:
            larger = pairs.get(reader.outputs[0])
            if reader.name not in _SUMS and (larger is None or not own <= larger or larger in kept):
                kept.add(own)
    return kept


def _shifted(steps: Sequence[Step]) -> frozenset[Slot]:
    """The rolls of arrays of which there are many of one shape, that anything but another one reads."""
    roots: dict[Slot, Slot] = {}
    read: list[Slot] = []
    for step in steps:
        sources = {roots.get(s, s) for s in step.inputs if s.known is None}
        if (step.name in MOVES or step.name in SHIFTS) and len(sources) == 1 and len(step.outputs) == 1:
            (out,) = step.outputs
            roots[out] = sources.pop()
            if step.name == "concatenate" and not all(r.name in SHIFTS for r in out.readers):
                read.append(out)
    times = Counter((roots[s], s.shape) for s in read)
    return frozenset(s for s in read if times[roots[s], s.shape] >= _MANY)


def _pairs(steps: Sequence[Step], views: frozenset[Slot]) -> dict[Slot, Pair]:
    """What each function of two arrays, one of them among ``views``, is a function of."""
    found: dict[Slot, Pair] = {}
    for step in steps:
        rule = RULES.get(step.name)
        elementwise = rule is not None and rule.reads in (Reads.POINTWISE, Reads.LINEAR)
        if not elementwise or step.is_known or len(step.outputs) != 1:
            continue
        own = frozenset(leaf for s in step.inputs if s.known is None for leaf in found.get(s, (s,)))
        most = 2 if step.name in _SUMS else _MOST
        if len(own) <= most and not own.isdisjoint(views):
            found[step.outputs[0]] = own
    return found

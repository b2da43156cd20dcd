"""An order in which the parts of a plan can run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxte.frontends.jaxpr.plan.items import Inner, Known, Region
from jaxte.frontends.jaxpr.plan.regions import Equation, Fate


def ordered(
    listed: Sequence[Equation],
    regions: Sequence[Region],
    inner: Mapping[int, Inner],
    numbers: Mapping[int, Sequence[Any]],
) -> Iterator[Region | Inner | Known | int]:
    """Everything in an order in which it can run; what stays keeps its own.

    Args:
        listed: all equations.
        regions: those that are raised together.
        inner: those whose bodies are raised, by number.
        numbers: what equations make of which everything is known, by number.
    """
    region_of = {n: region for region in regions for n in region.members}
    given = _given(listed, regions, numbers)
    done: set[int] = set()
    for first in listed:
        stack = [first]
        while stack:
            entry = stack[-1]
            region = region_of.get(entry.index)
            asked = entry is not first or len(stack) > 1
            if entry.index in done or (region is not None and not asked and not _is_last(entry, region)):
                stack.pop()
                continue
            group = [listed[n] for n in region.members] if region else [entry]
            members = {e.index for e in group}
            sources = () if entry.index in given else (s for e in group for s in e.sources)
            missing = next((s for s in sources if s.index not in done and s.index not in members), None)
            if missing is not None:
                stack.append(missing)
                continue
            stack.pop()
            done |= members
            other = inner.get(entry.index) or given.get(entry.index)
            if region is not None:
                yield region
            else:
                yield entry.index if other is None else other


def _given(
    listed: Sequence[Equation], regions: Sequence[Region], numbers: Mapping[int, Sequence[Any]]
) -> dict[int, Known]:
    """The equations whose results are known although those of a source are not: they wait for nothing.

    A region may both make such a source and read what is known; stages do not count what is known as a way between regions.
    """
    found: dict[int, Known] = {}
    for entry in listed if regions else ():
        if entry.fate is Fate.KNOWN and any(
            s.fate is not Fate.KNOWN or s.index in found for s in entry.sources
        ):
            found[entry.index] = Known(entry.index, tuple(numbers[entry.index]))
    return found


def _is_last(entry: Equation, region: Region) -> bool:
    """A region runs where its last equation stood, or before what reads it."""
    return entry.index == region.members[-1]

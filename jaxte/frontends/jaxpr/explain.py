"""What became of the lines of a function: raised and why, kept and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from jax.extend import source_info_util

from jaxte.bridge.compiled.explain import Explanation, explain_graph
from jaxte.frontends.jaxpr.gains.gains import SHIFTS
from jaxte.frontends.jaxpr.gains.worth import levels
from jaxte.frontends.jaxpr.plan.items import Inner, Measured, Plan, Priced, Region
from jaxte.frontends.jaxpr.plan.loops import Loop
from jaxte.frontends.jaxpr.plan.regions import GAINING, Equation
from jaxte.lang.checks import counted


@dataclass(frozen=True)
class Line:
    """Equations of one line of the user's source.

    Attributes:
        where: ``file:line``.
        what: their primitives.
        reason: what they gain, or why they stay.
    """

    where: str
    what: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        shown = ", ".join(
            f"{n} {name}" if (n := self.what.count(name)) > 1 else name for name in dict.fromkeys(self.what)
        )
        return f"{self.where}  {shown}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class RegionReport:
    """One region.

    Attributes:
        lines: the lines of the user's source that it is made of.
        code: how its tensors are lowered.
        ways: along how many ways an element is read by shifts of shifts, the estimate: XLA's one loop over JAX's transposes computes
            it for each.
        measured: how many times as fast the whole function is with this region and those like it; None where it was not tuned.
    """

    lines: tuple[Line, ...]
    code: Explanation
    ways: int
    measured: float | None

    def __str__(self) -> str:
        told = [f"an element is read along {self.ways} ways"] if self.ways > 1 else []
        told += [] if self.measured is None else [f"measured {self.measured:.2f} times as fast"]
        return ", ".join(told)


@dataclass(frozen=True)
class RaisedReport:
    """What ``te.explain`` says of a raised function.

    Attributes:
        name: the function.
        regions: what is raised.
        kept: what stays as it is.
        loops: loops that are written anew, or not, with the reason, and those of which products of all steps are taken together.
        parts: what is computed at some positions only, because others are not read.
        guarded: what would send an infinite slope or NaN back where nothing needs it, and how that is kept finite.
        raised_equations, kept_equations: how many.
        measured: what ``tune=`` has measured; None where regions were estimated.
        priced: the estimates of both programs, where all that has a rule is raised because that is faster by them.
    """

    name: str
    regions: tuple[RegionReport, ...]
    kept: tuple[Line, ...]
    raised_equations: int
    kept_equations: int
    measured: Measured | None = None
    loops: tuple[Line, ...] = ()
    parts: tuple[Line, ...] = ()
    guarded: tuple[Line, ...] = ()
    priced: Priced | None = None

    def __str__(self) -> str:
        return "\n".join(self._written())

    __repr__ = __str__

    def _written(self) -> Iterator[str]:
        yield f"{self.name}: {counted(self.raised_equations, 'equation', 'equations')} raised in {counted(len(self.regions), 'region', 'regions')}, {self.kept_equations} kept"
        if self.measured is not None:
            yield f"  {self.measured}"
        if self.priced is not None:
            yield f"  {self.priced}"
        for number, region in enumerate(self.regions):
            yield f"  region {number}: {region}".rstrip(": ")
            yield from (f"    {line}" for line in region.lines)
            for direction, choices in region.code.choices.items():
                forms = ", ".join(f"{n} {form}" for form, n in _counted(choices))
                yield f"    {direction}: {forms or 'nothing'}"
        if self.parts:
            yield "  in part"
            yield from (f"    {line}" for line in self.parts)
        if self.guarded:
            yield "  guarded"
            yield from (f"    {line}" for line in self.guarded)
        if self.loops:
            yield "  loops"
            yield from (f"    {line}" for line in self.loops)
        if self.kept:
            yield "  kept"
            yield from (f"    {line}" for line in self.kept)


def _counted(choices: Any) -> list[tuple[str, int]]:
    found: dict[str, int] = {}
    for choice in choices:
        found[choice.form] = found.get(choice.form, 0) + 1
    return list(found.items())


def report(name: str, plan: Plan) -> RaisedReport:
    """The report on a plan."""
    regions = tuple(_region(r, plan.measured) for r in plan.regions)
    kept = tuple(_lines(_kept(plan)))
    return RaisedReport(
        name,
        regions,
        kept,
        sum(len(e.steps) for r in plan.regions for e in r.equations),
        sum(len(line.what) for line in kept),
        plan.measured,
        (*_told(plan.written), *(_loop(entry, inner.loop) for entry, inner in _loops(plan))),
        tuple(_told(plan.parts)),
        tuple(_told(plan.guarded)),
        plan.priced,
    )


def _kept(plan: Plan) -> Iterator[Equation]:
    inner = {item.index: item for item in plan.items if isinstance(item, Inner) and item.raising is None}
    for entry in plan.kept:
        if entry.index not in inner:
            yield entry
        for body in inner[entry.index].plans if entry.index in inner else ():
            yield from _kept(body)


def _loops(plan: Plan) -> Iterator[tuple[Equation, Inner]]:
    """The loops of a plan and of its bodies, with their equations."""
    kept = {entry.index: entry for entry in plan.kept}
    for item in plan.items:
        if isinstance(item, Inner):
            if item.loop is not None:
                yield kept[item.index], item
            for body in item.plans:
                yield from _loops(body)


def _loop(entry: Equation, loop: Loop | None) -> Line:
    assert loop is not None
    summed = sum(len(site.products) for site in loop.sites)
    ahead = sum(eqn.primitive.name == "dot_general" for eqn in loop.ahead)
    told = (
        [f"the gradients of {counted(summed, 'matrix', 'matrices')} are one product over all steps each"]
        if summed
        else []
    )
    told += (
        [f"{counted(ahead, 'product is', 'products are')} taken for all steps before the loop"]
        if ahead
        else []
    )
    return Line(place(entry.eqn), (_name(entry.eqn),), ", ".join(told))


def _told(equations: Iterable[tuple[Any, str]]) -> Iterator[Line]:
    """One line for each line of source and what is said of its equations."""
    found: dict[tuple[str, str], list[str]] = {}
    for eqn, told in equations:
        found.setdefault((place(eqn), told), []).append(_name(eqn))
    for (where, told), names in found.items():
        yield Line(where, tuple(names), told)


def _region(region: Region, measured: Measured | None) -> RegionReport:
    factor = None if measured is None else measured.factor_of(region.places)
    return RegionReport(
        tuple(_lines(region.equations, raised=True)),
        explain_graph(region.code.graph),
        prod(levels([s for e in region.equations for s in e.steps if not s.is_known])),
        factor,
    )


def _lines(entries: Iterable[Equation], raised: bool = False) -> Iterator[Line]:
    """One line for each line of source; what gains says why."""
    found: dict[tuple[str, str], list[str]] = {}
    gains: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        key = place(entry.eqn), "" if raised else entry.reason
        found.setdefault(key, []).append(_name(entry.eqn))
        if raised and entry.fate in GAINING:
            gains.setdefault(key, []).append(entry.reason)
    for (where, kept), names in found.items():
        yield Line(where, tuple(names), kept or _gain(gains.get((where, kept), [])))


def _gain(reasons: Sequence[str]) -> str:
    """Why equations of one line gain: shifts together, else what the first one gains by itself."""
    strong = [r for r in reasons if r not in SHIFTS.values()]
    if strong or not reasons:
        return strong[0] if strong else ""
    return (
        f"{len(reasons)} reads at other positions, whose adjoints are such reads"
        if len(reasons) > 1
        else reasons[0]
    )


def _name(eqn: Any) -> str:
    name = str(eqn.params.get("name", ""))
    return name.strip("_<>").removesuffix("_static") if name.isidentifier() else str(eqn.primitive.name)


def place(eqn: Any) -> str:
    """``file:line`` of the user's source."""
    told = source_info_util.summarize(eqn.source_info).split(" ")[0]
    path, _, rest = told.partition(":")
    return f"{Path(path).name}:{rest.split(':')[0]}" if rest else path

"""What a plan is made of, regions that are raised, constructs around raised bodies and equations that stay, in an order in which they can run.

A plan has its seconds as well, of whole programs, forward and backward: measured with regions taken and left, or estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxte.bridge.compiled.compile import Compiled
from jaxte.frontends.jaxpr.equations.stands import Instead
from jaxte.frontends.jaxpr.plan.loops import Loop
from jaxte.frontends.jaxpr.plan.regions import Equation, Fate
from jaxte.frontends.jaxpr.taken import Raising


@dataclass(frozen=True)
class Ref:
    """An array of a jaxpr by where it comes from: an argument, a constant, or a result of an equation."""

    kind: str
    number: int
    result: int = 0


@dataclass(frozen=True, eq=False)
class Region:
    """Equations that are raised.

    Attributes:
        number: of the jaxpr that they stand in.
        members: their numbers.
        inputs: what the code takes: arrays of the jaxpr, or constants.
        outputs: what it makes.
        code: the tensors and what runs them.
        equations: what they were, for ``te.explain``.
        still: numbers of the inputs that are read without a derivative.
    """

    number: int
    members: tuple[int, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Ref, ...]
    code: Compiled
    equations: tuple[Equation, ...]
    still: frozenset[int] = frozenset()

    @property
    def places(self) -> frozenset[Place]:
        """Where its equations stand."""
        return frozenset((self.number, member) for member in self.members)


@dataclass(frozen=True, eq=False)
class Inner:
    """An equation whose bodies are raised.

    Attributes:
        number: of the jaxpr that it stands in.
        loop: how a ``scan`` of which nothing is raised is computed with products of all steps together.
        raising: of a ``jax.custom_vjp``: raises the functions that its backward rule differentiates.
    """

    number: int
    index: int
    plans: tuple[Plan, ...] = ()
    loop: Loop | None = None
    raising: Raising | None = None


@dataclass(frozen=True, eq=False)
class Known:
    """An equation that is not run, because what it makes is known.

    Attributes:
        index: its number.
        values: its results; None for one that nothing reads.
    """

    index: int
    values: tuple[Any, ...]


@dataclass(eq=False)
class Plan:
    """What runs in place of a jaxpr.

    Attributes:
        items: regions, constructs with raised bodies, what is known, and numbers of equations that stay, in the order in which they run.
        kept: the equations that stay, with the reasons.
        measured: where it was chosen by measuring.
        priced: where it was chosen by the prices of whole programs.
        instead: what runs in place of the jaxpr that was given: with guards, and without what nothing reads.
    """

    items: list[Region | Inner | Known | int] = field(default_factory=list)
    kept: list[Equation] = field(default_factory=list)
    measured: Measured | None = None
    priced: Priced | None = None
    instead: Instead | None = None

    @property
    def is_changed(self) -> bool:
        """Whether anything runs in another way than it stands."""
        return self.instead is not None or any(not isinstance(item, int) for item in self.items)

    @property
    def only_products(self) -> bool:
        """Whether nothing runs in another way than it stands but products of matrices, which a loop around them may take for all steps."""
        own = [item for item in self.items if not isinstance(item, int)]
        return self.instead is None and all(
            isinstance(item, Region) and all(e.fate is Fate.ALONE for e in item.equations) for item in own
        )

    @property
    def loops(self) -> list[Inner]:
        """The loops that take products of all steps together, those of bodies included."""
        inner = [item for item in self.items if isinstance(item, Inner)]
        return [i for i in inner if i.loop] + [i for item in inner for p in item.plans for i in p.loops]

    @property
    def parts(self) -> list[tuple[Any, str]]:
        """Equations of which a part is computed, and what part, those of bodies included."""
        own = [] if self.instead is None else list(self.instead.parts)
        return own + [part for plan in self._bodies for part in plan.parts]

    @property
    def guarded(self) -> list[tuple[Any, str]]:
        """Equations whose slopes are kept finite, and how, those of bodies included."""
        own = [] if self.instead is None else list(self.instead.guarded)
        return own + [guard for plan in self._bodies for guard in plan.guarded]

    @property
    def written(self) -> list[tuple[Any, str]]:
        """Loops that are written anew or not, and why, those of bodies included."""
        own = [] if self.instead is None else list(self.instead.loops)
        return own + [loop for plan in self._bodies for loop in plan.written]

    @property
    def _bodies(self) -> list[Plan]:
        return [plan for item in self.items if isinstance(item, Inner) for plan in item.plans]

    @property
    def places(self) -> frozenset[Place]:
        """Where the equations stand that run in another way."""
        own = frozenset((i.number, i.index) for i in self.loops)
        return own.union(*(region.places for region in self.regions))

    @property
    def regions(self) -> list[Region]:
        """All regions, those of bodies included."""
        own = [item for item in self.items if isinstance(item, Region)]
        return own + [
            r for item in self.items if isinstance(item, Inner) for p in item.plans for r in p.regions
        ]


def ordered(
    listed: Sequence[Equation],
    regions: Sequence[Region],
    inner: Mapping[int, Inner],
    numbers: Mapping[int, Sequence[Any]],
    tables: Mapping[int, Known],
) -> Iterator[Region | Inner | Known | int]:
    """Everything in an order in which it can run; what stays keeps its own.

    Args:
        listed: all equations.
        regions: those that are raised together.
        inner: those whose bodies are raised, by number.
        numbers: what equations make of which everything is known, by number.
        tables: equations that are not run, whatever stands around them.
    """
    region_of = {n: region for region in regions for n in region.members}
    given = {**_given(listed, regions, numbers), **tables}
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


Place = tuple[int, int]
"""An equation: the number of its jaxpr, in the order in which bodies are planned, and its number in it."""


@dataclass(frozen=True)
class Measured:
    """Least times in seconds, of a value and its gradient.

    Attributes:
        original: of the function as it stands.
        raised: of what is raised of it.
        without: of that without the regions of one kind, by the places of their equations.
        programs: how many were compiled.
    """

    original: float
    raised: float
    without: Mapping[frozenset[Place], float] = field(default_factory=dict)
    programs: int = 2

    @property
    def factor(self) -> float:
        """How many times as fast the function is with its regions."""
        return self.original / self.raised

    def factor_of(self, places: frozenset[Place]) -> float | None:
        """How many times as fast the function is with the regions of the kind at ``places``; None where they were not left."""
        found = next((seconds for key, seconds in self.without.items() if places <= key), None)
        return None if found is None else found / self.raised

    def __str__(self) -> str:
        return (
            f"measured: value and gradient in {1e3 * self.raised:.3g} ms, as it stands {1e3 * self.original:.3g} ms: "
            f"{self.factor:.2f} times as fast, the fastest of {self.programs} programs"
        )


@dataclass(frozen=True)
class Priced:
    """Seconds of a value and its gradient by the platform's estimate.

    Attributes:
        left: where only what gains by rules of structure is raised.
        raised: where all that has a rule is.
    """

    left: float
    raised: float

    def __str__(self) -> str:
        return (
            f"by estimate: value and gradient in {1e3 * self.raised:.2g} ms with all that has a rule raised, {1e3 * self.left:.2g} ms "
            "with what gains by itself alone"
        )

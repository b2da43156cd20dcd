"""A jaxpr as regions, calls whose bodies are raised, and the equations that stay: what is decided once for each jaxpr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from jax.extend.core import ClosedJaxpr, Literal, Var
from jax.tree_util import tree_structure

from jaxte.bridge.calls.outputs import Outputs
from jaxte.bridge.compiled.compiled import Compiled, compiled
from jaxte.bridge.primitive.lazy import BUILDING
from jaxte.frontends.jaxpr.equations.steps import GROUPS, Slot, Step, flat, known_array
from jaxte.frontends.jaxpr.narrow.rewrite import Shorter, narrowed
from jaxte.frontends.jaxpr.plan.alike import Alike, signature_of
from jaxte.frontends.jaxpr.plan.build import Builder, Refused
from jaxte.frontends.jaxpr.plan.loops import Loop, loop_of
from jaxte.frontends.jaxpr.plan.measured import Measured, Place
from jaxte.frontends.jaxpr.plan.regions import GAINING, Choice, Equation, Fate, cut, equations
from jaxte.lang.errors import JaxteError
from jaxte.tensors.graph import topological_order
from jaxte.tensors.tensor import Placeholder, Tensor

# constructs that are kept around bodies that are raised, and the parameter that holds these
BODIES = {
    "scan": "jaxpr",
    "cond": "branches",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    **GROUPS,
}


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
    """

    number: int
    members: tuple[int, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Ref, ...]
    code: Compiled
    equations: tuple[Equation, ...]

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
    """

    number: int
    index: int
    plans: tuple[Plan, ...] = ()
    loop: Loop | None = None


@dataclass(eq=False)
class Plan:
    """What runs in place of a jaxpr.

    Attributes:
        items: regions, constructs with raised bodies, and numbers of equations that stay, in the order in which they run.
        kept: the equations that stay, with the reasons.
        measured: where it was chosen by measuring.
        narrowed: what runs in place of the jaxpr that was given, without what nothing reads.
    """

    items: list[Region | Inner | int] = field(default_factory=list)
    kept: list[Equation] = field(default_factory=list)
    measured: Measured | None = None
    narrowed: Shorter | None = None

    @property
    def is_changed(self) -> bool:
        """Whether anything runs in another way than it stands."""
        return self.narrowed is not None or any(not isinstance(item, int) for item in self.items)

    @property
    def only_products(self) -> bool:
        """Whether nothing runs in another way than it stands but products of matrices, which a loop around them may take for all steps."""
        own = [item for item in self.items if not isinstance(item, int)]
        return self.narrowed is None and all(
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
        own = [] if self.narrowed is None else list(self.narrowed.parts)
        return own + [
            part for item in self.items if isinstance(item, Inner) for p in item.plans for part in p.parts
        ]

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


class Planner:
    """Makes plans, of each jaxpr once; equations at ``left`` stay as they are, whatever is chosen."""

    def __init__(self, choice: Choice = Choice.ESTIMATED, left: Set[Place] = frozenset()) -> None:
        self.choice = choice
        self.left = frozenset(left)
        self._made: dict[int, tuple[Any, Plan]] = {}
        self._seen = 0
        self._alike = Alike()

    def plan(self, closed: Any) -> Plan:
        """The plan of a closed jaxpr."""
        found = self._made.get(id(closed))
        if found is None:
            number, self._seen = self._seen, self._seen + 1
            with BUILDING:
                found = closed, self._plan(closed, number)
            self._made[id(closed)] = found
        return found[1]

    def _plan(self, closed: Any, number: int) -> Plan:
        slots, found = _steps_of(closed)
        without = narrowed(closed, [step for _, steps in found for step in steps], slots)
        if without is not None:
            closed = without.closed
            slots, found = _steps_of(closed)
        jaxpr = closed.jaxpr
        left = {index for place, index in self.left if place == number}
        listed = equations(found, self.choice, left)
        inner = {e.index: made for e in listed if e.index not in left and (made := self._bodies(e, number))}
        refs = _refs(jaxpr)
        while True:
            # of what nothing reads there is no code
            groups = [g for g in cut(listed, self.choice) if _results(g, {e.index for e in g}, jaxpr)]
            try:
                regions = [
                    _region(number, group, jaxpr, slots, refs, n, self._alike)
                    for n, group in enumerate(groups)
                ]
                break
            except _Refusal as refusal:
                for entry in refusal.entries:
                    entry.become(Fate.KEPT, refusal.reason)
        return Plan(list(_ordered(listed, regions, inner)), _kept(listed, regions), narrowed=without)

    def _bodies(self, entry: Equation, number: int) -> Inner | None:
        """A construct with the plans of its bodies, where one of them changes, or all steps of it are taken together."""
        if entry.fate is not Fate.KEPT or entry.eqn.effects or entry.eqn.primitive.name not in BODIES:
            return None
        plans = tuple(self.plan(body) for body in bodies_of(entry.eqn))
        loop = loop_of(entry.eqn) if all(p.only_products for p in plans) else None
        if loop is not None:
            return Inner(number, entry.index, loop=loop)
        return Inner(number, entry.index, plans) if any(p.is_changed for p in plans) else None


def _steps_of(closed: Any) -> tuple[dict[Any, Slot], list[tuple[Any, list[Step]]]]:
    """The arrays of a jaxpr, and its equations with the steps that they are made of."""
    jaxpr = closed.jaxpr
    slots = {v: Slot(v.aval) for v in jaxpr.invars}
    slots |= {v: Slot(v.aval, known_array(c)) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)}
    return slots, list(flat(jaxpr.eqns, slots))


def _kept(listed: Sequence[Equation], regions: Sequence[Region]) -> list[Equation]:
    """The equations that stay, each with a reason."""
    raised = {n for region in regions for n in region.members}
    found = [e for e in listed if e.index not in raised and e.fate is not Fate.KNOWN]
    for entry in found:
        if entry.fate is Fate.GAINS:
            entry.become(entry.fate, "too few reads to gain: one loop of XLA's, also with JAX's transposes")
        elif entry.fate is Fate.NEUTRAL:
            entry.become(entry.fate, "nothing beside it gains")
    return found


def bodies_of(eqn: Any) -> list[Any]:
    """The closed jaxprs of a construct."""
    found = eqn.params[BODIES[eqn.primitive.name]]
    listed = found if isinstance(found, (tuple, list)) else [found]
    return [b if hasattr(b, "consts") else ClosedJaxpr(b, ()) for b in listed]


@dataclass
class _Refusal(Exception):
    entries: Sequence[Equation]
    reason: str


def _refs(jaxpr: Any) -> dict[Any, Ref]:
    found = {v: Ref("in", n) for n, v in enumerate(jaxpr.invars)}
    found |= {v: Ref("const", n) for n, v in enumerate(jaxpr.constvars)}
    for number, eqn in enumerate(jaxpr.eqns):
        found |= {v: Ref("out", number, n) for n, v in enumerate(eqn.outvars)}
    return found


def _region(
    place: int,
    group: Sequence[Equation],
    jaxpr: Any,
    slots: dict[Any, Slot],
    refs: dict[Any, Ref],
    number: int,
    alike: Alike,
) -> Region:
    """The tensors of a group and their code."""
    steps = [step for entry in group for step in (*entry.again, *entry.steps)]
    members = {e.index for e in group}
    results = _results(group, members, jaxpr)
    label = next((e.steps[0].label for e in group if e.fate in GAINING), "region")
    try:
        code, read = _code(f"{label}_{number}", steps, [slots[v] for v in results], alike)
    except Refused as refused:
        entry = next((e for e in group if refused.step in e.steps), group[0])
        raise _Refusal([entry], refused.reason) from None
    except JaxteError as error:
        raise _Refusal(group, str(error)) from error
    places: dict[Slot, Ref] = {}
    for v, slot in slots.items():
        places.setdefault(
            slot, refs[v]
        )  # where it was first: a call that returns its argument makes no other array
    # what is known goes in as numbers: XLA would compute exp(...) of positions again for each element that it is fused with
    inputs = tuple(
        places[s] if s.known is None or (s.origin is None and s in places) else s.known for s in read
    )
    return Region(place, tuple(sorted(members)), inputs, tuple(refs[v] for v in results), code, tuple(group))


def _code(
    name: str, steps: Sequence[Step], results: Sequence[Slot], alike: Alike
) -> tuple[Compiled, Sequence[Slot]]:
    """The code of ``steps``, or that of equal ones, and the arrays that it takes."""
    own = signature_of(steps, results)
    known = alike.code(own)
    if known is not None:
        return known
    builder = Builder()
    tensors = builder.run(steps, results)
    tree = tree_structure(0) if len(tensors) == 1 else tree_structure([0] * len(tensors))
    read = _read(builder, tensors)
    code = compiled(name, tuple(read.values()), Outputs(tuple(tensors), tree, len(tensors)))
    _ = code.graph.both_passes  # derived and lowered now, so that what cannot be is kept
    alike.keep(own, code, list(read))
    return code, list(read)


def _read(builder: Builder, tensors: Sequence[Tensor]) -> dict[Slot, Placeholder]:
    """What is read of the arrays from outside: a matrix that chooses elements is not."""
    reached = set(topological_order(tensors))
    return {slot: own for slot, own in builder.placeholders.items() if own in reached}


def _results(group: Sequence[Equation], members: set[int], jaxpr: Any) -> list[Var]:
    """The variables of a group that are read outside of it."""
    returned = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    found = []
    for entry in group:
        for var in entry.eqn.outvars:
            outside = any(r.index not in members and var in r.eqn.invars for r in entry.readers)
            if outside or var in returned:
                found.append(var)
    return found


def _ordered(
    listed: Sequence[Equation], regions: Sequence[Region], inner: dict[int, Inner]
) -> Iterator[Region | Inner | int]:
    """Everything in an order in which it can run; what stays keeps its own."""
    region_of = {n: region for region in regions for n in region.members}
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
            sources = (s for e in group for s in e.sources)
            missing = next((s for s in sources if s.index not in done and s.index not in members), None)
            if missing is not None:
                stack.append(missing)
                continue
            stack.pop()
            done |= members
            if region is not None:
                yield region
            elif entry.index in inner:
                yield inner[entry.index]
            else:
                yield entry.index


def _is_last(entry: Equation, region: Region) -> bool:
    """A region runs where its last equation stood, or before what reads it."""
    return entry.index == region.members[-1]

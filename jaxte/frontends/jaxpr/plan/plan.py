"""A jaxpr as regions, calls whose bodies are raised, and the equations that stay: what is decided once for each jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from functools import partial
from typing import Any

from jax.extend.core import ClosedJaxpr

from jaxte.bridge.calls.options import NO_OPTIONS
from jaxte.bridge.jaxprs import GROUPS, REMATS
from jaxte.bridge.primitive.lazy import BUILDING
from jaxte.frontends.jaxpr.equations.stands import Instead
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, flat, has_symbols, slots_of
from jaxte.frontends.jaxpr.guards.rewrite import guarded
from jaxte.frontends.jaxpr.loops.budget import within
from jaxte.frontends.jaxpr.loops.rewrite import counted_loops
from jaxte.frontends.jaxpr.narrow.bands import banded
from jaxte.frontends.jaxpr.narrow.pairs import NOTHING_GIVEN, Given, Known, given_to, given_to_body
from jaxte.frontends.jaxpr.narrow.rewrite import narrowed
from jaxte.frontends.jaxpr.narrow.sliced import sliced
from jaxte.frontends.jaxpr.narrow.unstacked import unstacked
from jaxte.frontends.jaxpr.plan.around import Around
from jaxte.frontends.jaxpr.plan.bounded import bounded_whiles
from jaxte.frontends.jaxpr.plan.items import Inner, Place, Plan, Region, ordered
from jaxte.frontends.jaxpr.plan.loops import loop_of
from jaxte.frontends.jaxpr.plan.moving import LOOPS, Wanted, moving, wanted_of_bodies
from jaxte.frontends.jaxpr.plan.region_code import Alike, Refusal, places_of, refs, region_of, results_of
from jaxte.frontends.jaxpr.plan.regions import GAINING, Choice, Equation, Fate, cut, equations
from jaxte.frontends.jaxpr.plan.tables import tables
from jaxte.frontends.jaxpr.taken import Raising
from jaxte.lang.limits import CASES

# constructs that are kept around bodies that are raised, and the parameter that holds these
BODIES = {**dict.fromkeys(LOOPS, "jaxpr"), "cond": "branches", "shard_map": "jaxpr", **REMATS, **GROUPS}
WITH_RULE = "custom_vjp_call"
_FIRST = Around()


class Planner:
    """Makes plans, of each jaxpr once.

    Args:
        choice: what is raised.
        left: places of equations that stay as they are, whatever is chosen.
        safe: whether what is not chosen is not differentiated either.
        alike: code of other plans of the same function, which serves where regions are equal.
        raising: raises functions that a rule of ``jax.custom_vjp`` differentiates itself; None where these stay as they are.
        save: bytes of states that each loop keeps; None for what JAX keeps.
        beside: one of another choice, which may have read and rewritten the same jaxpr.
    """

    def __init__(
        self,
        choice: Choice = Choice.ESTIMATED,
        left: Set[Place] = frozenset(),
        safe: bool = True,
        alike: Alike | None = None,
        raising: Raising | None = None,
        save: int | None = None,
        beside: Planner | None = None,
    ) -> None:
        self.choice, self.save = choice, save
        self.safe = safe
        self.left = frozenset(left)
        self._raising = raising
        self._made: dict[Hashable, tuple[Any, Plan]] = {}
        self._seen = 0
        self._first: tuple[Any, Read] | None = None if beside is None else beside._first
        shared = beside is not None and Choice.NOTHING not in (choice, beside.choice)
        self._stands: dict[Hashable, tuple[Any, Stands]] = beside._stands if beside and shared else {}
        self._alike = Alike() if alike is None else alike

    def choosing(self, choice: Choice) -> Planner:
        """One of another choice for the same jaxpr, which is read once, and rewritten once where both narrow it."""
        return Planner(choice, self.left, self.safe, self._alike, self._raising, self.save, beside=self)

    def plan(self, closed: Any, wanted: Wanted = None, around: Around = _FIRST) -> Plan:
        """The plan of a closed jaxpr, which stands somewhere; regions are derived by the arguments in ``wanted``, and by others when asked for."""
        key = id(closed), wanted, around.key
        found = self._made.get(key)
        if found is None:
            number, self._seen = self._seen, self._seen + 1
            with BUILDING:
                found = closed, self._plan(closed, number, wanted, around)
            self._made[key] = found
        return found[1]

    def _plan(self, closed: Any, number: int, wanted: Wanted, around: Around) -> Plan:
        instead, closed, slots, found = self._stands_for(closed, wanted, around)
        jaxpr, looped = closed.jaxpr, around.looped
        left = {index for place, index in self.left if place == number}
        listed = equations(found, NO_OPTIONS.policy().facts, self.choice, left, looped)
        moves = moving(jaxpr, wanted)
        steps = [step for _, own in found for step in own]
        known = Known(steps, given_to(closed, slots, around.given))
        flows = around.flowing(closed)
        inner = {
            e.index: made
            for e in listed
            if e.index not in left and (made := self._bodies(e, number, moves, flows, jaxpr, around, known))
        }
        numbers = {e.index: [slots[v].known for v in e.eqn.outvars] for e in listed if e.fate is Fate.KNOWN}
        tabled = tables(listed, slots, jaxpr.outvars, NO_OPTIONS.policy().facts)
        if all(e.fate not in GAINING for e in listed):
            items = list(ordered(listed, (), inner, numbers, tabled))
            return Plan(items, _kept(listed, ()), instead=instead)
        places = places_of(slots, refs(jaxpr), moves)
        while True:
            # of what nothing reads there is no code
            groups = [
                g for g in cut(listed, self.choice, looped) if results_of(g, {e.index for e in g}, jaxpr)
            ]
            regions, refusals = [], []
            for n, group in enumerate(groups):
                try:
                    regions.append(region_of(number, group, jaxpr, slots, places, n, self._alike))
                except Refusal as refusal:  # of all groups before they are cut anew
                    refusals.append(refusal)
            if not refusals:
                break
            for entry, reason in ((e, refusal.reason) for refusal in refusals for e in refusal.entries):
                entry.become(Fate.KEPT, reason)
        items = list(ordered(listed, regions, inner, numbers, tabled))
        return Plan(items, _kept(listed, regions), instead=instead)

    def read(self, closed: Any, given: Given = NOTHING_GIVEN) -> Read:
        """The arrays and equations of a jaxpr; those of the first one, in which bodies are, are kept."""
        if self._first is None:
            self._first = closed, steps_of(closed)
        own, found = self._first
        return found if own is closed else steps_of(closed, given)

    def _stands_for(self, closed: Any, wanted: Wanted, around: Around) -> Stands:
        """What stands in place of ``closed``, which another planner may have found."""
        key = id(closed), wanted, around.key
        if key not in self._stands:
            self._stands[key] = closed, self._rewritten(closed, wanted, around)
        return self._stands[key][1]

    def _rewritten(self, closed: Any, wanted: Wanted, around: Around) -> Stands:
        """What stands in place of ``closed``, with its arrays and its equations."""
        given, divided = around.given, around.divided
        slots, found = self.read(closed, given)
        instead = bounded_whiles(closed, slots, wanted)
        if instead is not None:
            closed = instead.closed
            slots, found = steps_of(closed, given)
        with_symbols = any(step.has_symbols for _, steps in found for step in steps)
        narrows = self.choice is not Choice.NOTHING and not with_symbols
        if narrows and not divided:
            counting = counted_loops(closed, slots)
            instead = instead if counting is None else counting.after(instead)
        if self.save is not None and not divided:
            kept = within(closed if instead is None else instead.closed, self.save)
            instead = instead if kept is None else kept.after(instead)
        if instead is not None:
            closed = instead.closed
            slots, found = steps_of(closed, given)
        apart = narrows and not divided
        # Bands of different widths in one jaxpr are few.
        asked: list[tuple[Callable[..., Instead | None], int]] = [
            (sliced, int(apart)),
            (partial(unstacked, raised=lambda: self._raised(found)), int(apart)),
            (partial(banded, given=given, facts=NO_OPTIONS.policy().facts), CASES if apart else 0),
            (
                partial(guarded, same=around.same, inside=around.inside, flows=around.flows),
                int(self.safe and not divided and not around.told),
            ),
            (narrowed, int(apart)),
        ]
        for rewrite, most in asked:
            for _ in range(most):
                other = rewrite(closed, [step for _, steps in found for step in steps], slots)
                if other is None:
                    break
                instead, closed = other.after(instead), other.closed
                slots, found = steps_of(closed, given)
        return instead, closed, slots, found

    def _bodies(
        self,
        entry: Equation,
        number: int,
        moves: set[Any] | None,
        flows: set[Any] | None,
        jaxpr: Any,
        around: Around,
        known: Known,
    ) -> Inner | None:
        """A construct with the plans of its bodies, where one of them changes, or all steps of it are taken together."""
        if entry.eqn.effects or entry.fate is Fate.KNOWN:
            return None
        if entry.eqn.primitive.name == WITH_RULE and self._raising is not None:
            inside = self._gains(entry.eqn.params["call_jaxpr"])
            return Inner(number, entry.index, raising=self._raising) if inside else None
        if entry.fate is not Fate.KEPT or entry.eqn.primitive.name not in BODIES:
            return None
        bodies = bodies_of(entry.eqn)
        wanted = wanted_of_bodies(entry.eqn, bodies, moves)
        given = given_to_body(entry.eqn, entry.steps, known)
        plans = tuple(
            self.plan(body, own, around.of_body(body, entry.eqn, jaxpr, given, through))
            for body, own, through in zip(
                bodies, wanted, wanted_of_bodies(entry.eqn, bodies, flows), strict=True
            )
        )
        products = self.choice is not Choice.NOTHING and all(p.only_products for p in plans)
        rates = NO_OPTIONS.policy().rates
        loop = loop_of(entry.eqn, rates) if products and not _has_symbols(entry.eqn) else None
        if loop is not None:
            return Inner(number, entry.index, loop=loop)
        return Inner(number, entry.index, plans) if any(p.is_changed for p in plans) else None

    def _raised(self, found: Sequence[tuple[Any, list[Step]]]) -> set[Step]:
        """The steps of the regions that a jaxpr with these equations has as it stands."""
        groups = cut(equations(found, NO_OPTIONS.policy().facts, self.choice), self.choice)
        return {step for group in groups for entry in group for step in entry.steps}

    def _gains(self, closed: Any) -> bool:
        """Whether anything in a jaxpr, bodies of loops included, would be raised; nothing is lowered to find out."""
        if cut(equations(steps_of(closed)[1], NO_OPTIONS.policy().facts, self.choice), self.choice):
            return True
        return any(self._gains(body) for eqn in closed.jaxpr.eqns for body in closed_of(eqn))


def closed_of(eqn: Any) -> list[Any]:
    """The closed jaxprs among the parameters of an equation."""
    flat = (v for p in eqn.params.values() for v in (p if isinstance(p, (tuple, list)) else (p,)))
    return [v for v in flat if isinstance(v, ClosedJaxpr)]


Read = tuple[dict[Any, Slot], list[tuple[Any, list[Step]]]]
"""The arrays of a jaxpr, and its equations with their steps."""
Stands = tuple[Instead | None, Any, dict[Any, Slot], list[tuple[Any, list[Step]]]]
"""What stands in place of a jaxpr, the jaxpr that it is, and its arrays and equations."""


def steps_of(closed: Any, given: Given = NOTHING_GIVEN) -> Read:
    """The arrays of a jaxpr, and its equations with the steps that they are made of; some arguments may be ``given``."""
    slots = slots_of(closed, given)
    return slots, list(flat(closed.jaxpr.eqns, slots))


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


def _has_symbols(eqn: Any) -> bool:
    """Whether sizes in a construct, those within its bodies included, are symbols of ``jax.export``."""
    inside = [e for body in bodies_of(eqn) for e in body.jaxpr.eqns]
    return has_symbols(eqn) or any(map(has_symbols, inside))


def bodies_of(eqn: Any) -> list[Any]:
    """The closed jaxprs of a construct."""
    found = eqn.params[BODIES[eqn.primitive.name]]
    listed = found if isinstance(found, (tuple, list)) else [found]
    return [b if hasattr(b, "consts") else ClosedJaxpr(b, ()) for b in listed]

"""A jaxpr as regions, calls whose bodies are raised, and the equations that stay: what is decided once for each jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from jax.extend.core import ClosedJaxpr, Literal, Var
from jax.tree_util import tree_structure

from jaxte.bridge.calls.options import NO_OPTIONS
from jaxte.bridge.calls.outputs import Outputs
from jaxte.bridge.compiled.compile import Compiled, compiled
from jaxte.bridge.jaxprs import GROUPS, REMATS, scan_counts
from jaxte.bridge.primitive.lazy import BUILDING
from jaxte.derivatives.overrides import reached_with_derivatives
from jaxte.frontends.jaxpr.equations.stands import Instead
from jaxte.frontends.jaxpr.equations.steps import Refused, Slot, Step, flat, has_symbols, known_array
from jaxte.frontends.jaxpr.guards.rewrite import guarded
from jaxte.frontends.jaxpr.loops.budget import within
from jaxte.frontends.jaxpr.loops.rewrite import counted_loops
from jaxte.frontends.jaxpr.narrow.bands import banded
from jaxte.frontends.jaxpr.narrow.pairs import NOTHING_GIVEN, Given, Known, given_to, given_to_body
from jaxte.frontends.jaxpr.narrow.rewrite import narrowed
from jaxte.frontends.jaxpr.narrow.sliced import sliced
from jaxte.frontends.jaxpr.plan.alike import Alike, signature_of
from jaxte.frontends.jaxpr.plan.bounded import bounded_whiles
from jaxte.frontends.jaxpr.plan.build import Builder
from jaxte.frontends.jaxpr.plan.items import Inner, Place, Plan, Ref, Region, ordered
from jaxte.frontends.jaxpr.plan.loops import loop_of
from jaxte.frontends.jaxpr.plan.moving import LOOPS, Wanted, moving, still, wanted_of_bodies
from jaxte.frontends.jaxpr.plan.regions import GAINING, Choice, Equation, Fate, cut, equations
from jaxte.frontends.jaxpr.plan.tables import tables
from jaxte.frontends.jaxpr.taken import Raising
from jaxte.lang.errors import JaxteError
from jaxte.lang.limits import CASES
from jaxte.tensors.tensor import Placeholder, Tensor

# constructs that are kept around bodies that are raised, and the parameter that holds these
BODIES = {
    **dict.fromkeys(LOOPS, "jaxpr"),
    "cond": "branches",
    "shard_map": "jaxpr",
    **REMATS,
    **GROUPS,
}
WITH_RULE = "custom_vjp_call"


class Planner:
    """Makes plans, of each jaxpr once.

    Args:
        choice: what is raised.
        left: places of equations that stay as they are, whatever is chosen.
        safe: whether what is not chosen is not differentiated either.
        alike: code of other plans of the same function, which serves where regions are equal.
        raising: raises functions that a rule of ``jax.custom_vjp`` differentiates itself; None where these stay as they are.
        save: bytes of states that each loop keeps; None for what JAX keeps.
    """

    def __init__(
        self,
        choice: Choice = Choice.ESTIMATED,
        left: Set[Place] = frozenset(),
        safe: bool = True,
        alike: Alike | None = None,
        raising: Raising | None = None,
        save: int | None = None,
    ) -> None:
        self.choice, self.save = choice, save
        self.safe = safe
        self.left = frozenset(left)
        self._raising = raising
        self._made: dict[Hashable, tuple[Any, Plan]] = {}
        self._seen = 0
        self._first: tuple[Any, Read] | None = None
        self._alike = Alike() if alike is None else alike

    def plan(
        self,
        closed: Any,
        wanted: Wanted = None,
        divided: bool = False,
        looped: bool = False,
        given: Given = NOTHING_GIVEN,
        same: int = 0,
    ) -> Plan:
        """The plan of a closed jaxpr; regions are derived by the arguments in ``wanted``, and by others when asked for.

        What is ``divided`` over devices by a ``jax.shard_map`` is not rewritten before: its axes have names only there. What is ``looped``
        runs in each turn of a loop, where XLA does some primitives in other ways, and the first ``same`` arguments are the same in all of them. Some arguments
        may be ``given``: it is known what they hold.
        """
        key = id(closed), wanted, looped, same, tuple((n, hash(a.tobytes())) for n, a in given.items())
        found = self._made.get(key)
        if found is None:
            number, self._seen = self._seen, self._seen + 1
            with BUILDING:
                found = closed, self._plan(closed, number, wanted, divided, looped, given, same)
            self._made[key] = found
        return found[1]

    def _plan(
        self, closed: Any, number: int, wanted: Wanted, divided: bool, looped: bool, given: Given, same: int
    ) -> Plan:
        instead, closed, slots, found = self._rewritten(closed, divided, wanted, given, same, number > 0)
        jaxpr = closed.jaxpr
        left = {index for place, index in self.left if place == number}
        listed = equations(found, NO_OPTIONS.policy().facts, self.choice, left, looped)
        moves = moving(jaxpr, wanted)
        steps = [step for _, own in found for step in own]
        known = Known(steps, given_to(closed, slots, given))
        inner = {
            e.index: made
            for e in listed
            if e.index not in left and (made := self._bodies(e, number, moves, divided, looped, known))
        }
        numbers = {e.index: [slots[v].known for v in e.eqn.outvars] for e in listed if e.fate is Fate.KNOWN}
        tabled = tables(listed, slots, jaxpr.outvars, NO_OPTIONS.policy().facts)
        if all(e.fate not in GAINING for e in listed):
            items = list(ordered(listed, (), inner, numbers, tabled))
            return Plan(items, _kept(listed, ()), instead=instead)
        places = _places(slots, _refs(jaxpr), moves)
        while True:
            # of what nothing reads there is no code
            groups = [g for g in cut(listed, self.choice, looped) if _results(g, {e.index for e in g}, jaxpr)]
            regions, refusals = [], []
            for n, group in enumerate(groups):
                try:
                    regions.append(_region(number, group, jaxpr, slots, places, n, self._alike))
                except _Refusal as refusal:  # of all groups before they are cut anew
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

    def _rewritten(
        self, closed: Any, divided: bool, wanted: Wanted, given: Given, same: int, inside: bool
    ) -> tuple[Instead | None, Any, dict[Any, Slot], list[tuple[Any, list[Step]]]]:
        """What stands in place of ``closed``, with its arrays and its equations."""
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
            (partial(banded, given=given, facts=NO_OPTIONS.policy().facts), CASES if apart else 0),
            (partial(guarded, same=same, inside=inside), int(self.safe and not divided)),
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
        divided: bool,
        looped: bool,
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
        divided = divided or entry.eqn.primitive.name == "shard_map"
        looped = looped or entry.eqn.primitive.name in LOOPS
        given = given_to_body(entry.eqn, entry.steps, known)
        same = scan_counts(entry.eqn.params)[0] if entry.eqn.primitive.name == "scan" else 0
        plans = tuple(
            self.plan(body, own, divided, looped, given, same)
            for body, own in zip(bodies, wanted, strict=True)
        )
        products = self.choice is not Choice.NOTHING and all(p.only_products for p in plans)
        rates = NO_OPTIONS.policy().rates
        loop = loop_of(entry.eqn, rates) if products and not _has_symbols(entry.eqn) else None
        if loop is not None:
            return Inner(number, entry.index, loop=loop)
        return Inner(number, entry.index, plans) if any(p.is_changed for p in plans) else None

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


def steps_of(closed: Any, given: Given = NOTHING_GIVEN) -> Read:
    """The arrays of a jaxpr, and its equations with the steps that they are made of; some arguments may be ``given``."""
    jaxpr = closed.jaxpr
    slots = {v: Slot(v.aval, known_array(given.get(n))) for n, v in enumerate(jaxpr.invars)}
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


def _has_symbols(eqn: Any) -> bool:
    """Whether sizes in a construct, those within its bodies included, are symbols of ``jax.export``."""
    inside = [e for body in bodies_of(eqn) for e in body.jaxpr.eqns]
    return has_symbols(eqn) or any(map(has_symbols, inside))


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


@dataclass(frozen=True)
class _Places:
    """Where the arrays of a jaxpr come from, by variable and by what they hold, and which of them a derivative moves (None for all)."""

    of_variables: dict[Any, Ref]
    of_slots: dict[Slot, Ref]
    moving: frozenset[Slot] | None = None


def _places(slots: dict[Any, Slot], refs: dict[Any, Ref], moves: set[Any] | None) -> _Places:
    found: dict[Slot, Ref] = {}
    for v, slot in slots.items():
        found.setdefault(
            slot, refs[v]
        )  # where it was first: a call that returns its argument makes no other array
    return _Places(refs, found, None if moves is None else frozenset(slots[v] for v in moves))


def _region(
    place: int,
    group: Sequence[Equation],
    jaxpr: Any,
    slots: dict[Any, Slot],
    places: _Places,
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
        flat = still(steps, [slots[v] for v in results], read)
        given = code.graph.differentiable
        perturbed = (
            n for n in given if n not in flat and (places.moving is None or read[n] in places.moving)
        )
        code.graph.prepare(tuple(perturbed))  # now, so that what cannot be is kept
    except Refused as refused:
        raise _Refusal(_refused_alike(group, refused) or [group[0]], refused.reason) from None
    except JaxteError as error:
        raise _Refusal(group, str(error)) from error
    # what is known goes in as numbers: XLA would compute exp(...) of positions again for each element that it is fused with
    refs = places.of_slots | _as_read(group, slots, places)
    inputs = tuple(
        refs[s] if s.known is None or (s.origin is None and s in places.of_slots) else s.known for s in read
    )
    return Region(
        place,
        tuple(sorted(members)),
        inputs,
        tuple(places.of_variables[v] for v in results),
        code,
        tuple(group),
        flat,
    )


def _refused_alike(group: Sequence[Equation], refused: Refused) -> list[Equation]:
    """The equations with the step that was refused, and those with steps of its kind that are refused by themselves: found one after the other,
    each would take the regions to be cut and built once more.
    """

    def is_refused(step: Step) -> bool:
        if step is refused.step or step.name != refused.step.name or step.is_known:
            return step is refused.step
        try:
            Builder().run([step], step.outputs)
        except Refused as own:
            return own.reason == refused.reason
        return False

    return [e for e in group if any(map(is_refused, e.steps))]


def _as_read(group: Sequence[Equation], slots: dict[Any, Slot], places: _Places) -> dict[Slot, Ref]:
    """The arrays that a group reads, by the variables by which it does: those that other regions make for it.

    An array has several where a call returns its argument.
    """
    made = {v for e in group for v in e.eqn.outvars}
    read = (v for e in group for v in e.eqn.invars if not isinstance(v, Literal) and v not in made)
    return {slots[v]: places.of_variables[v] for v in read}


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
    alike.keep(own, code, list(read))
    return code, list(read)


def _read(builder: Builder, tensors: Sequence[Tensor]) -> dict[Slot, Placeholder]:
    """What is read of the arrays from outside, by values or by derivatives: a matrix that chooses elements is not."""
    reached = set(reached_with_derivatives(tensors))
    return {slot: own for slot, own in builder.placeholders.items() if own in reached}


def _results(group: Sequence[Equation], members: set[int], jaxpr: Any) -> list[Var]:
    """The variables of a group that are read outside of it."""
    returned = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    found = []
    for entry in group:
        for var in entry.eqn.outvars:
            outside = any(
                r.index not in members and r.fate is not Fate.KNOWN and var in r.eqn.invars
                for r in entry.readers
            )
            if outside or var in returned:
                found.append(var)
    return found

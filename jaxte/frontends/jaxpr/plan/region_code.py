"""The code of a region: its equations as definitions, or why there is none; of regions that are the same, that of the first.

Groups of equations that are the same: the layers of a network, each of which is raised, derived and lowered as the first one was.

Two groups are the same where their primitives, parameters, shapes and known arrays are, where they are connected in the same way, and where their
results are read by equations of the same kind, linear ones or others, which decides what becomes a tensor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax.extend.core import Literal, Var
from jax.tree_util import tree_structure

from jaxte.bridge.calls.outputs import Outputs
from jaxte.bridge.compiled.compile import Compiled, compiled
from jaxte.derivatives.overrides import reached_with_derivatives
from jaxte.frontends.jaxpr.equations.steps import Refused, Slot, Step
from jaxte.frontends.jaxpr.plan.build import Builder
from jaxte.frontends.jaxpr.plan.items import Ref, Region
from jaxte.frontends.jaxpr.plan.moving import still
from jaxte.frontends.jaxpr.plan.regions import GAINING, Equation, Fate
from jaxte.lang.errors import JaxteError
from jaxte.tensors.inputs import Placeholder
from jaxte.tensors.tensor import Tensor


@dataclass
class Refusal(Exception):
    """Why equations have no code as definitions."""

    entries: Sequence[Equation]
    reason: str


def refs(jaxpr: Any) -> dict[Any, Ref]:
    """Where each variable of a jaxpr comes from: an argument, a constant, or a result of an equation."""
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


def places_of(slots: dict[Any, Slot], refs: dict[Any, Ref], moves: set[Any] | None) -> _Places:
    """Where the arrays of a jaxpr come from, of which a derivative moves those of ``moves``."""
    found: dict[Slot, Ref] = {}
    for v, slot in slots.items():
        # where it was first: a call that returns its argument makes no other array
        found.setdefault(slot, refs[v])
    return _Places(refs, found, None if moves is None else frozenset(slots[v] for v in moves))


def region_of(
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
    results = results_of(group, members, jaxpr)
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
        raise Refusal(_refused_alike(group, refused) or [group[0]], refused.reason) from None
    except JaxteError as error:
        raise Refusal(group, str(error)) from error
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
    read = _placeholders_read(builder, tensors)
    code = compiled(name, tuple(read.values()), Outputs(tuple(tensors), tree, len(tensors)))
    alike.keep(own, code, list(read))
    return code, list(read)


def _placeholders_read(builder: Builder, tensors: Sequence[Tensor]) -> dict[Slot, Placeholder]:
    """What is read of the arrays from outside, by values or by derivatives: a matrix that chooses elements is not."""
    reached = set(reached_with_derivatives(tensors))
    return {slot: own for slot, own in builder.placeholders.items() if own in reached}


def results_of(group: Sequence[Equation], members: set[int], jaxpr: Any) -> list[Var]:
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


@dataclass(frozen=True)
class Signature:
    """What groups are compared by.

    Attributes:
        key: equal for equal groups; None where a parameter cannot be compared.
        slots: their arrays in the order of their appearance.
    """

    key: Hashable | None
    slots: tuple[Slot, ...]


@dataclass
class Alike:
    """The code that was made for groups, and which of their arrays it reads, by number."""

    _made: dict[Hashable, tuple[Compiled, tuple[int, ...]]] = field(default_factory=dict)

    def code(self, own: Signature) -> tuple[Compiled, list[Slot]] | None:
        """The code of an equal group, and what it reads of this one."""
        found = None if own.key is None else self._made.get(own.key)
        return None if found is None else (found[0], [own.slots[n] for n in found[1]])

    def keep(self, own: Signature, code: Compiled, read: Sequence[Slot]) -> None:
        """From now on ``code`` serves groups like this one, all of whose arrays are among its own."""
        places = {slot: n for n, slot in enumerate(own.slots)}
        if own.key is not None and all(slot in places for slot in read):
            self._made[own.key] = code, tuple(places[slot] for slot in read)


def signature_of(steps: Sequence[Step], results: Sequence[Slot]) -> Signature:
    """What ``steps`` with these ``results`` are compared by."""
    slots: dict[Slot, int] = {}
    place = {step: n for n, step in enumerate(steps)}
    key: list[Any] = []
    for step in steps:
        for slot in (*step.inputs, *step.outputs):
            slots.setdefault(slot, len(slots))
        key.append((step.name, step.label, _params(step), *(slots[s] for s in (*step.inputs, *step.outputs))))
    key += [tuple(slots.get(s, -1) for s in results)]
    key += [(_array(s), *_read(s, place)) for s in slots]
    try:
        hash(whole := tuple(key))
    except TypeError:
        return Signature(None, tuple(slots))
    return Signature(whole, tuple(slots))


def _params(step: Step) -> Hashable:
    return tuple(sorted(step.eqn.params.items(), key=lambda item: item[0]))


def _array(slot: Slot) -> Hashable:
    """The type of an array, and its content where that is known."""
    weak = bool(getattr(slot.aval, "weak_type", False))
    if slot.known is None:
        return slot.shape, slot.dtype, weak, None
    content = hashlib.sha256(np.ascontiguousarray(slot.known).tobytes()).digest()
    return slot.shape, slot.dtype, weak, content


def _read(slot: Slot, place: dict[Step, int]) -> tuple[Hashable, ...]:
    """The readers of what the group makes, by number, and what those outside decide about views; nothing of what it is given."""
    if slot.origin not in place:
        return ()
    several = len(slot.readers) > 1 and not all(r.reads_linearly for r in slot.readers)
    return tuple(place[r] for r in slot.readers if r in place), several

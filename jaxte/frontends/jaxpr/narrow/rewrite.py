"""A function without what nothing reads: slices stand before what maps over the positions that they take.

Functions with a tangent of their own, such as ``jax.nn.relu``, are narrowed together with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax

from jaxte.frontends.jaxpr.equations.stands import Instead, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, flat, known_array, slot_of
from jaxte.frontends.jaxpr.narrow.boxes import Box, is_whole, same, whole
from jaxte.frontends.jaxpr.narrow.demand import TAKES, Demand, computed, demand_of, pays
from jaxte.frontends.jaxpr.narrow.rows import narrows
from jaxte.frontends.jaxpr.plan.overrides import calls_itself, tangent_jaxpr


def narrowed(closed: Any, steps: Sequence[Step], slots: Mapping[Any, Slot]) -> Instead | None:
    """``closed``, whose equations are ``steps``, with what is read of each array only; None where little would be left out."""
    if not any(step.name in TAKES for step in steps):
        return None
    jaxpr = closed.jaxpr
    results = [slot_of(v, slots) for v in jaxpr.outvars]
    demand = demand_of(steps, [(slot, whole(len(slot.shape))) for slot in results])
    if not pays(steps, demand):
        return None

    def run(*args: Any) -> list[Any]:
        env = {slots[v]: const for v, const in zip(jaxpr.constvars, closed.consts, strict=True)}
        env |= {slots[v]: arg for v, arg in zip(jaxpr.invars, args, strict=True)}
        return computed(steps, demand, env, results)

    return Instead(jax.make_jaxpr(run)(*closed.in_avals), tuple(_parts(steps, demand)))


def _parts(steps: Sequence[Step], demand: Demand) -> Iterator[tuple[Any, str]]:
    for step in steps:
        found = demand.steps.get(step)
        if found is not None and not is_whole(found.box) and step.name not in TAKES:
            (out,) = step.outputs
            told = [f"{len(p)} of {e}" for p, e in zip(found.box, out.shape, strict=True) if p is not None]
            yield step.eqn, f"{' x '.join(told)} positions are read, and computed"


# functions whose tangents are being looked at: a tangent that calls its function says nothing new
_LOOKED_AT: list[str] = []
_DEEPEST = 3  # of tangents within tangents, which may go on without end


class _Part:
    """A jaxpr of which a part of one result is computed."""

    def __init__(self, closed: Any, box: Box, result: int = 0) -> None:
        jaxpr = closed.jaxpr
        slots = {v: Slot(v.aval) for v in jaxpr.invars}
        slots |= {
            v: Slot(v.aval, known_array(c)) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)
        }
        self.steps: list[Step] = [s for _, found in flat(jaxpr.eqns, slots) for s in found]
        self.result = slot_of(jaxpr.outvars[result], slots)
        self.inputs = [slots[v] for v in jaxpr.invars]
        self.demand: Demand = demand_of(self.steps, [(self.result, box)], self.inputs)
        self.consts = {slots[v]: c for v, c in zip(jaxpr.constvars, closed.consts, strict=True)}

    @property
    def needs(self) -> list[Box | None]:
        """What it needs of each operand; None where it needs nothing."""
        return [self.demand.read.get(slot) for slot in self.inputs]

    def __call__(self, *operands: Any) -> Any:
        given = self.consts | dict(zip(self.inputs, operands, strict=True))
        return computed(self.steps, self.demand, given, [self.result])[0]


def _own(step: Step, box: Box) -> _Part:
    return _Part(step.eqn.params["call_jaxpr"], box)


def _tangent(step: Step, box: Box) -> tuple[_Part, list[int]]:
    """The tangent, and which operands have one."""
    rule, moving = tangent_jaxpr(step.eqn)
    return _Part(rule, box, 1), moving


def _calls_itself(step: Step) -> bool:
    """Whether the rule calls the function for its value, so that derivatives of derivatives have the rule again."""
    rule, _ = tangent_jaxpr(step.eqn)
    found = _Part(rule, whole(len(step.outputs[0].shape)))
    origin = found.result.origin
    if origin is None or origin.name != step.name:
        return False
    return calls_itself(step, origin, found.inputs, origin.inputs)


def _made(step: Step, box: Box, operands: Sequence[Any]) -> Any:
    call = jax.custom_jvp(_own(step, box))

    def moved(xs: Sequence[Any], ts: Sequence[Any]) -> Any:
        tangent, moving = _tangent(step, box)
        return call(*xs), tangent(*xs, *(ts[n] for n in moving))

    call.defjvp(moved)
    return in_place_of(step.eqn, call, *operands)


@narrows("custom_jvp_call", make=_made)
def _own_tangent(step: Step, box: Box) -> Sequence[Box] | None:
    """What the function needs, where its tangent needs no more, and the same of tangents."""
    if is_whole(box) or len(_LOOKED_AT) >= _DEEPEST or not _calls_itself(step):
        return None
    needed = _own(step, box).needs
    told = [[b] for b in needed]
    key = str(step.eqn.params["call_jaxpr"])
    if key not in _LOOKED_AT:
        _LOOKED_AT.append(key)
        try:
            tangent, moving = _tangent(step, box)
        finally:
            _LOOKED_AT.pop()
        for n, own in enumerate(told):
            own += [tangent.needs[n]]
            own += [tangent.needs[len(told) + moving.index(n)]] if n in moving else []
    found = [[b for b in own if b is not None] for own in told]
    if any(not same(b, own[0]) for own in found for b in own):
        return None
    return [own[0] if own else whole(len(s.shape)) for own, s in zip(found, step.inputs, strict=True)]

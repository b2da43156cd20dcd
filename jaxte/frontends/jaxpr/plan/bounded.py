"""``lax.while_loop`` with a bound as a scan that changes nothing once it has ended, which has a reverse derivative.

A condition that says, beside anything else, that a counter is below a number, ``(i < 100) & (error > tolerance)`` where each step adds to ``i`` what is known, bounds
the number of steps. JAX differentiates no ``while_loop`` in reverse; a loop through which no change reaches a result stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jax import lax
from jax.extend.core import Literal, jaxpr_as_fun

from jaxte.bridge.jaxprs import literal_array
from jaxte.frontends.jaxpr.equations.stands import Instead, opened, traced
from jaxte.frontends.jaxpr.equations.steps import Slot, grouped, slot_of
from jaxte.frontends.jaxpr.guards.flowing import FLAT
from jaxte.frontends.jaxpr.plan.moving import Wanted, moving
from jaxte.lang.dtypes import is_inexact

_MOST = 100_000  # steps, of which those behind the end are tested, too
_BELOW = {"lt": 0, "le": 1}


def bounded_whiles(closed: Any, slots: Mapping[Any, Slot], wanted: Wanted) -> Instead | None:
    """``closed`` with such loops as scans; None where there are none."""
    whiles = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "while"]
    if not whiles:
        return None
    flowing = _flowing(closed.jaxpr, wanted)
    steps = {
        id(eqn): count
        for eqn in whiles
        if any(v in flowing for v in eqn.outvars) and (count := _steps(eqn, slots)) is not None
    }
    if not steps:
        return None

    def instead(eqn: Any, operands: Sequence[Any]) -> list[Any] | None:
        return _scanned(eqn, operands, steps[id(eqn)]) if id(eqn) in steps else None

    told = tuple((eqn, f"a scan of at most {steps[id(eqn)]} steps") for eqn in whiles if id(eqn) in steps)
    return Instead(traced(closed, instead), loops=told)


def _flowing(jaxpr: Any, wanted: Wanted) -> set[Any]:
    """The variables that move where the ``wanted`` arguments do, and through which that reaches a result."""
    every = frozenset(range(len(jaxpr.invars))) if wanted is None else wanted
    moves = moving(jaxpr, every) or set()
    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive.name not in FLAT and not needed.isdisjoint(eqn.outvars):
            needed.update(a for a in eqn.invars if not isinstance(a, Literal))
    return {v for v in moves & needed if is_inexact(str(v.aval.dtype))}


def _scanned(eqn: Any, operands: Sequence[Any], steps: int) -> list[Any]:
    p = eqn.params
    tests, rest = operands[: p["cond_nconsts"]], operands[p["cond_nconsts"] :]
    consts, start = rest[: p["body_nconsts"]], rest[p["body_nconsts"] :]
    test, body = jaxpr_as_fun(p["cond_jaxpr"]), jaxpr_as_fun(p["body_jaxpr"])

    def step(carry: list[Any], _: None) -> tuple[list[Any], None]:
        (goes_on,) = test(*tests, *carry)
        return lax.cond(goes_on, lambda own: list(body(*consts, *own)), list, carry), None

    return list(lax.scan(step, list(start), None, length=steps)[0])


# --- the bound


def _steps(eqn: Any, slots: Mapping[Any, Slot]) -> int | None:
    """The number of steps that a condition leaves at most; None where it says nothing."""
    p = eqn.params
    count, held = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    condition, body = (opened(p[name], grouped).jaxpr for name in ("cond_jaxpr", "body_jaxpr"))
    found = []
    for less in _conjuncts(condition, condition.outvars[0]):
        if less.primitive.name not in _BELOW or less.invars[0] not in condition.invars[count:]:
            continue
        number = condition.invars.index(less.invars[0]) - count
        start = _number(slot_of(eqn.invars[held + number], slots))
        other = _same_in_all(less.invars[1], condition, body, eqn, slots)
        bound = None if other is None else _bound(other)
        by = _added(body, p["body_nconsts"], number)
        if start is not None and bound is not None and by:
            found.append(max(0, -(-(bound + _BELOW[less.primitive.name] - start) // by)))
    return min(found) if found and min(found) <= _MOST else None


def _conjuncts(jaxpr: Any, atom: Any) -> Iterator[Any]:
    """The equations whose results all hold where ``atom`` does."""
    made = next((e for e in jaxpr.eqns if atom in e.outvars), None)
    if made is not None and made.primitive.name in ("and", "convert_element_type"):
        for own in made.invars:
            yield from () if isinstance(own, Literal) else _conjuncts(jaxpr, own)
    elif made is not None:
        yield made


def _bound(slot: Slot) -> int | None:
    """A number, or the greatest that it may be, as in ``jnp.minimum(n, 100)``."""
    known = _number(slot)
    if known is None and slot.origin is not None and slot.origin.name == "min":
        own = [n for n in map(_number, slot.origin.inputs) if n is not None]
        known = min(own) if own else None
    return known


def _same_in_all(atom: Any, condition: Any, body: Any, eqn: Any, slots: Mapping[Any, Slot]) -> Slot | None:
    """What a condition compares, where it is the same in all steps."""
    if isinstance(atom, Literal):
        return slot_of(atom, slots)
    if atom not in condition.invars:
        return None
    number, consts = condition.invars.index(atom), eqn.params["cond_nconsts"]
    if number < consts:
        return slot_of(eqn.invars[number], slots)
    carried, held = number - consts, eqn.params["body_nconsts"]
    is_same = body.outvars[carried] is body.invars[held + carried]
    return slot_of(eqn.invars[consts + held + carried], slots) if is_same else None


def _number(slot: Slot) -> int | None:
    value = slot.known
    return int(value) if value is not None and value.size == 1 and value.dtype.kind in "iu" else None


def _added(body: Any, consts: int, number: int) -> int | None:
    """By how much each step increases what is carried at ``number``."""
    own, new = body.invars[consts + number], body.outvars[number]
    made = next((e for e in body.eqns if new in e.outvars), None)
    if made is None or made.primitive.name != "add" or own not in made.invars:
        return None
    others = [a for a in made.invars if a is not own]
    if len(others) != 1 or not isinstance(others[0], Literal):
        return None
    step = int(literal_array(others[0]))
    return step if step > 0 else None

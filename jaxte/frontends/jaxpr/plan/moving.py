"""What a derivative moves: the arrays of a jaxpr that depend on the arguments that are differentiated, and those of a region that change a result.

A plan derives and lowers its regions for these, which is what JAX's rules will ask of them; for others it would be done in vain. What makes
the arrays that nothing flows back to may have no reverse derivative at all, as a ``while_loop``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jax.core import Tracer
from jax.extend.core import Literal
from jax.interpreters.partial_eval import DynamicJaxprTracer

from jaxte.bridge.jaxprs import scan_counts
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.flowing import FLAT
from jaxte.frontends.jaxpr.loops.kept import KEPT_SCAN
from jaxte.lang.dtypes import is_inexact

LOOPS = ("scan", KEPT_SCAN)


def still(steps: Sequence[Step], results: Sequence[Slot], read: Sequence[Slot]) -> frozenset[int]:
    """Numbers of the inexact arrays of ``read`` through which no change reaches ``results``."""
    moving = {slot for slot in results if is_inexact(slot.dtype)}
    for step in reversed(steps):
        if step.name not in FLAT and not moving.isdisjoint(step.outputs):
            moving.update(slot for slot in step.inputs if is_inexact(slot.dtype))
    return frozenset(n for n, slot in enumerate(read) if is_inexact(slot.dtype) and slot not in moving)


Wanted = frozenset[int] | None
"""Numbers of the arguments that are differentiated; None where all may be."""


def wanted_of(arguments: Sequence[Any]) -> Wanted:
    """The arguments that a derivative is being taken by: those whose tracers are not those of ``jax.jit``; None where that is not known."""
    traced = [n for n, a in enumerate(arguments) if isinstance(a, Tracer)]
    return frozenset(n for n in traced if not isinstance(arguments[n], DynamicJaxprTracer)) or None


def moving(jaxpr: Any, wanted: Wanted) -> set[Any] | None:
    """The variables that depend on the arguments in ``wanted``; None for all."""
    if wanted is None:
        return None
    found = {v for n, v in enumerate(jaxpr.invars) if n in wanted and _is_inexact(v)}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name not in FLAT and moved(eqn.invars, found):
            found.update(v for v in eqn.outvars if _is_inexact(v))
    return found


def moved(atoms: Iterable[Any], found: set[Any]) -> frozenset[int]:
    """Numbers of those of ``atoms`` that are in ``found``."""
    return frozenset(n for n, a in enumerate(atoms) if not isinstance(a, Literal) and a in found)


def wanted_of_bodies(eqn: Any, bodies: Sequence[Any], found: set[Any] | None) -> list[Wanted]:
    """For each body of a construct, the arguments of it that move where the variables in ``found`` do."""
    if found is None:
        return [None] * len(bodies)
    own = moved(eqn.invars, found)
    if eqn.primitive.name == "cond":
        return [frozenset(n - 1 for n in own)] * len(bodies)
    if eqn.primitive.name in LOOPS:
        (body,) = bodies
        return [_of_carry(body.jaxpr, own, *scan_counts(eqn.params))]
    return [own] * len(bodies)


def _of_carry(jaxpr: Any, own: frozenset[int], consts: int, carried: int) -> frozenset[int]:
    """``own`` with what is carried from a step that moves."""
    while True:
        found = moving(jaxpr, own) or set()
        more = own | {consts + n for n in moved(jaxpr.outvars[:carried], found)}
        if more == own:
            return own
        own = more


def _is_inexact(v: Any) -> bool:
    return is_inexact(str(getattr(v.aval, "dtype", "")))

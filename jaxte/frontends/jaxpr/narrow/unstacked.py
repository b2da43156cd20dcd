"""Sums along an axis on which a few arrays are stacked, as sums of what is made of each array: nothing is laid out side by side.

``jnp.sum(jnp.stack([dx, dy], -1) ** 2, -1)`` is ``dx**2 + dy**2``. A stack is an array of its own, whatever adds it up again, and shifts that are stacked are
no stencil any more.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxte.bridge.calls.options import planned_facts
from jaxte.frontends.jaxpr.equations.dimensions import dimensions
from jaxte.frontends.jaxpr.equations.stands import Instead, as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, slot_of
from jaxte.frontends.jaxpr.gains.gains import gain_of
from jaxte.frontends.jaxpr.gains.sums import elements
from jaxte.frontends.jaxpr.narrow.rows import bound
from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE
from jaxte.lang.limits import FEW_POSITIONS, LARGE_RESULT

# the dimension of each array along which it is taken apart
_Along = dict[Slot, int]


def unstacked(
    closed: Any, steps: Sequence[Step], slots: Mapping[Any, Slot], raised: Callable[[], Container[Step]]
) -> Instead | None:
    """``closed``, whose equations are ``steps``, with such sums taken apart; None where there are none that gain.

    Args:
        raised: the steps that are raised as the jaxpr stands, beside which a stack is in the way whatever its size.
    """
    results = {slot_of(v, slots) for v in closed.jaxpr.outvars}
    found = {s: along for s in steps if (along := _taken_apart(s, results)) is not None}
    if not found:
        return None
    inside = raised()
    found = {s: own for s, own in found.items() if s in inside or _gains_by_itself(s, own)}
    while lost := [s for s, own in found.items() if _is_read_in_whole(own, found)]:
        found = {s: own for s, own in found.items() if s not in lost}
    return Instead(_traced(closed, steps, slots, found)) if found else None


def _gains_by_itself(step: Step, along: _Along) -> bool:
    """Whether a sum is better taken apart where nothing is raised: of functions of what is stacked, which is large.

    What is stacked XLA computes once, which is as good where it is small, or only added; and it adds up a whole array to one number in one call, unless parts lie
    side by side.
    """
    (source,) = step.inputs
    if not planned_facts().copies_reduced_slices or elements(source) < LARGE_RESULT:
        return False
    made = [slot.origin for slot in along if slot.origin is not None]
    last = along[source] == len(source.shape) - 1
    return (last or step.outputs[0].shape != ()) and not all(
        s.reads_linearly or _stacked(s.outputs[0], along[s.outputs[0]]) for s in made
    )


def _taken_apart(step: Step, results: Container[Slot]) -> _Along | None:
    """What a sum is taken apart into, back to what is stacked; None of one that stays."""
    if step.name != "reduce_sum" or step.is_known or step.has_symbols or gain_of(step):
        return None
    (source,) = step.inputs
    for d in step.eqn.params["axes"]:
        if 1 < source.shape[d] <= FEW_POSITIONS:
            found = _back_to_stacks(source, d)
            if found is not None and not any(slot in results for slot in found):
                return found
    return None


def _back_to_stacks(source: Slot, d: int) -> _Along | None:
    """The arrays along the way from stacks along dimension ``d`` to ``source``, by functions of single elements; None where there are others on it."""
    found: _Along = {source: d}
    waiting, stacks = [source], 0
    while waiting:
        slot = waiting.pop()
        if slot.known is not None:
            continue
        if slot.origin is None:
            return None
        if _stacked(slot, found[slot]):
            stacks += 1
            continue
        followed = _followed(slot.origin, found[slot])
        if followed is None:
            return None
        for other, own in followed.items():
            if found.get(other, own) != own:
                return None
            if other not in found:
                found[other] = own
                waiting.append(other)
    return found if stacks else None


def _stacked(slot: Slot, d: int) -> bool:
    """Whether an array is others side by side along dimension ``d``, each of one position there."""
    step = slot.origin
    if step is None or step.name not in ("stack", "concatenate"):
        return False
    if step.name == "stack":
        return bool(step.eqn.params["axis"] % len(slot.shape) == d)
    return step.eqn.params["dimension"] == d and all(s.shape[d] == 1 for s in step.inputs)


def _followed(step: Step, d: int) -> _Along | None:
    """The operands that have dimension ``d`` of what a step makes of single elements, and which one of theirs it is; None of another step."""
    if (step.name not in ELEMENTWISE and step.name != "broadcast_in_dim") or step.eqn.effects:
        return None
    own = dimensions(step.eqn)
    if own is None:
        return None
    return {
        slot: of.index(d)
        for slot, of in zip(step.inputs, own, strict=True)
        if d in of and slot.shape[of.index(d)] > 1
    }


def _is_read_in_whole(along: _Along, sums: Mapping[Step, _Along]) -> bool:
    """Whether something that is not taken apart reads one of the arrays that were stacked, which then is there."""
    return any(
        slot.known is None
        and not all(
            any(
                (r is s or not own.keys().isdisjoint(r.outputs)) and own.get(slot) == d
                for s, own in sums.items()
            )
            for r in slot.readers
        )
        for slot, d in along.items()
    )


def _traced(
    closed: Any, steps: Sequence[Step], slots: Mapping[Any, Slot], sums: Mapping[Step, _Along]
) -> Any:
    """``closed`` with these sums taken apart."""
    along = {slot: d for own in sums.values() for slot, d in own.items()}
    jaxpr = closed.jaxpr
    results = [slot_of(v, slots) for v in jaxpr.outvars]

    def run(*args: Any) -> list[Any]:
        env = {slots[v]: const for v, const in zip(jaxpr.constvars, closed.consts, strict=True)}
        env |= {slots[v]: arg for v, arg in zip(jaxpr.invars, args, strict=True)}
        parts: dict[Slot, list[Any]] = {}

        def read(slot: Slot) -> Any:
            return env.get(slot, slot.known)

        def parts_of(slot: Slot) -> list[Any]:
            if slot not in parts:  # a known array
                parts[slot] = [np.take(slot.known, k, along[slot]) for k in range(slot.shape[along[slot]])]
            return parts[slot]

        for step in steps:
            made = [slot for slot in step.outputs if slot in along and slot.known is None]
            if step in sums:
                (source,) = step.inputs
                env[step.outputs[0]] = _added(step, parts_of(source), along[source])
            elif made:
                parts[made[0]] = list(_parts(step, along, read, parts_of))
            else:
                env.update(
                    zip(step.outputs, as_it_stands(step.eqn, list(map(read, step.inputs))), strict=True)
                )
        return [read(slot) for slot in results]

    return jax.make_jaxpr(run)(*closed.in_avals)


def _added(step: Step, parts: Sequence[Any], d: int) -> Any:
    """The sum of ``parts``, which had dimension ``d``, along the other axes of a sum."""
    axes = tuple(a - (a > d) for a in step.eqn.params["axes"] if a != d)
    added = in_place_of(step.place, lambda *own: reduce(lax.add, own), *parts)
    return bound(step, [added], axes=axes) if axes else added


def _parts(
    step: Step, along: _Along, read: Callable[[Slot], Any], parts_of: Callable[[Slot], list[Any]]
) -> Iterator[Any]:
    """What ``step`` makes, one position after the other along its dimension, which each of them does not have."""
    (out,) = step.outputs
    d = along[out]
    if _stacked(out, d):
        for slot in step.inputs:
            yield read(slot) if step.name == "stack" else _without(step, read(slot), d)
        return
    followed = _followed(step, d) or {}
    if step.name == "broadcast_in_dim":
        (source,) = step.inputs
        for k in range(out.shape[d]):
            own = parts_of(source)[k] if source in followed else read(source)
            yield _repeated(step, d, followed, own)
        return
    # one number for all positions, of an operand that has the dimension
    same = {s: _without(step, read(s), d) for s in step.inputs if s not in followed and s.shape}
    for k in range(out.shape[d]):
        yield bound(step, [parts_of(s)[k] if s in followed else same.get(s, read(s)) for s in step.inputs])


def _without(step: Step, array: Any, d: int) -> Any:
    """``array`` without dimension ``d``, along which it has one position."""
    return in_place_of(step.place, lambda x: lax.squeeze(x, (d,)), array)


def _repeated(step: Step, d: int, followed: _Along, operand: Any) -> Any:
    """What a broadcast makes, without dimension ``d``, of its operand, from which that was taken if it had it."""
    (source,), shape = step.inputs, step.outputs[0].shape
    into = step.eqn.params["broadcast_dimensions"]
    if source not in followed and d in into:
        operand = _without(step, operand, into.index(d))
    kept = tuple(n - (n > d) for n in into if n != d)
    return bound(step, [operand], shape=(*shape[:d], *shape[d + 1 :]), broadcast_dimensions=kept)

"""A JAX function as one definition, whose Jacobian has its pattern and its elements from index notation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from jaxte.bridge.compiled.sparse import SparseJacobian, sparse_jacobian
from jaxte.bridge.primitive.lazy import BUILDING
from jaxte.derivatives.reverse import differentiate
from jaxte.frontends.jaxpr.equations.steps import Refused, Slot, needed, slot_of
from jaxte.frontends.jaxpr.plan.build import Builder
from jaxte.frontends.jaxpr.plan.plan import steps_of
from jaxte.lang.errors import JaxteError

Arrays = Sequence[Any]


def defined(
    closed: Any, number: int, second: bool
) -> tuple[SparseJacobian, Callable[[Arrays], Arrays]] | None:
    """The derivative of the only result of ``closed`` by its argument ``number``, and the arrays that its values take of the arguments.

    None where an equation has no index notation, or its derivative no pattern that positions tell.
    """
    slots, found = steps_of(closed)
    jaxpr = closed.jaxpr
    result = slot_of(jaxpr.outvars[0], slots)
    builder = Builder()
    try:
        with BUILDING:
            x = builder.value(slots[jaxpr.invars[number]]).tensor()
            (output,) = builder.run(needed([s for _, own in found for s in own], [result]), [result])
            if second:
                (output,) = differentiate(output, [x])
            matrix = sparse_jacobian(output, x)
    except (Refused, JaxteError):
        return None
    places: dict[Slot, int] = {slots[v]: n for n, v in enumerate((*jaxpr.invars, *jaxpr.constvars))}
    of_tensor = {tensor: slot for slot, tensor in builder.placeholders.items()}
    wanted = [of_tensor[t] for t in matrix.inputs]
    if any(slot not in places and slot.known is None for slot in wanted):
        return None

    def fed(arrays: Arrays) -> Arrays:
        given = (*arrays, *closed.consts)
        return [given[places[s]] if s in places else jnp.asarray(s.known) for s in wanted]

    return matrix, fed

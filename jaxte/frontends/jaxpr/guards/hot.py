"""Masks of which each row takes an element, as ``jax.nn.one_hot(jnp.argmax(x, -1), n)`` does: what is multiplied by one number of the row is needed in whole."""

from __future__ import annotations

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot
from jaxte.frontends.jaxpr.guards.uses import MASKS_MOVE, Use

# the number of the result that says at which of the positions along an axis an element was found
_FOUND = {"argmax": 0, "argmin": 0, "top_k": 1}
_SAME = ("convert_element_type", "stop_gradient", "copy")


def takes_of_each_row(use: Use) -> bool:
    """Whether the reader multiplies by a mask of rows, each of which takes an element, what is the same along them."""
    (out,), own = use.step.outputs, use.step.inputs[use.operand]
    mask = use.step.inputs[1 - use.operand]
    if len(own.shape) != len(out.shape) or use.step.has_symbols:
        return False
    along = [d for d, (a, b) in enumerate(zip(own.shape, out.shape, strict=True)) if a == 1 < b]
    return any(mask.shape[d] == out.shape[d] and _has_one(mask, d) for d in along)


def _has_one(mask: Slot, axis: int) -> bool:
    """Whether some element of ``mask`` along ``axis`` holds, at each position along the others."""
    found = _below(mask, axis)
    made = None if found is None else found[0].origin
    if found is None or made is None or made.name != "eq":
        return False
    return any(
        _counts(a, found[1]) and _is_found(b, found[1], a) for a, b in (made.inputs, made.inputs[::-1])
    )


def _below(slot: Slot, axis: int) -> tuple[Slot, int] | None:
    """What ``slot`` is made of without its moves, and the axis that was ``axis``; None where it is repeated along this axis."""
    while (made := slot.origin) is not None and slot.known is None:
        if made.name == "broadcast_in_dim":
            places = tuple(made.eqn.params["broadcast_dimensions"])
            if axis not in places or made.inputs[0].shape[places.index(axis)] != slot.shape[axis]:
                return None
            axis = places.index(axis)
        elif made.name not in _SAME:
            break
        slot = made.inputs[0]
    return slot, axis


def _counts(slot: Slot, axis: int) -> bool:
    """Whether ``slot`` is 0, 1, 2 and so on along ``axis``."""
    found = _below(slot, axis)
    if found is None or found[0].known is None:
        return False
    rows = np.moveaxis(found[0].known, found[1], -1)
    return bool((rows == np.arange(rows.shape[-1])).all())


def _is_found(slot: Slot, axis: int, counted: Slot) -> bool:
    """Whether ``slot`` is one number along ``axis``, and one of those that are ``counted`` there."""
    if slot.shape and slot.shape[axis] != 1 and _below(slot, axis) is not None:
        return False
    while (made := slot.origin) is not None and made.name in (*MASKS_MOVE, *_SAME, "slice"):
        slot = made.inputs[0]
    if made is None or made.name not in _FOUND or slot is not made.outputs[_FOUND[made.name]]:
        return False
    (searched,) = made.inputs
    along = made.eqn.params["axes"][0] if "axes" in made.eqn.params else len(searched.shape) - 1
    return bool(searched.shape[along] <= counted.shape[axis])

"""Reductions along a stack of shifts: windows, which JAX lays out and whose extrema it compares with all that was laid out."""

from __future__ import annotations

from jaxte.frontends.jaxpr.equations.steps import Slot, Step

_REDUCTIONS = ("reduce_max", "reduce_min", "reduce_sum")
_VIEWS = ("slice", "concatenate", "pad", "transpose", "reshape", "broadcast_in_dim", "squeeze", "expand_dims")
_FEWEST = 4  # parts; of fewer, the stack is soon written


def reduces_shifts(step: Step) -> bool:
    """Whether ``step`` reduces along a stack of slices of one array, of which it is the only reader."""
    if step.name not in _REDUCTIONS:
        return False
    (slot,) = step.inputs
    stack = slot.origin
    if stack is None or stack.name not in ("stack", "concatenate") or len(slot.readers) > 1:
        return False
    params = stack.eqn.params
    axis = params["axis" if stack.name == "stack" else "dimension"] % len(slot.shape)
    if axis not in step.eqn.params["axes"] or len(stack.inputs) < _FEWEST:
        return False
    if stack.name == "concatenate" and any(part.shape[axis] != 1 for part in stack.inputs):
        return False
    shifted = [part for part in stack.inputs if _source(part) is not part]
    return len({_source(part) for part in stack.inputs}) == 1 and 2 * len(shifted) > len(stack.inputs)


def _source(slot: Slot) -> Slot:
    """What ``slot`` is a view of."""
    while (step := slot.origin) is not None and step.name in _VIEWS:
        slot = step.inputs[0]
    return slot

"""Slopes that are known to be finite but where a row is not: those of ``exp(x - max(x))``, and of sums of it.

No element is beyond its maximum, so that the argument is at most 0, and one of a sum is 1, so that a sum is at least that. Only where the
maximum is infinite or NaN this does not hold, which a comparison of the operand itself tells: no mask of what is needed is reduced to rows for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.bridge.jaxprs import bound
from jaxte.frontends.jaxpr.equations.stands import in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.uses import MOST_ALIKE
from jaxte.frontends.jaxpr.guards.values import Ranges
from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE
from jaxte.lang.dtypes import is_inexact

_ADDS = frozenset(["add", "add_any", "sub"])
_MOVES = frozenset(["broadcast_in_dim", "reduce_sum", "reshape", "squeeze", "expand_dims", "transpose"])
_SAME = frozenset(["stop_gradient", "copy"])


@dataclass(frozen=True)
class Bound:
    """``step`` has a finite slope where its operand ``operand`` is at most 0, or at least 1 where it is a sum; others are of rows that are not finite."""

    step: Step
    operand: int

    def compute(self, operands: Sequence[Any]) -> Any:
        """The step as it is, with a slope of 0 in rows that are not finite."""
        return in_place_of(self.step.eqn, _finite_slope(self), *operands)


def bound_of(step: Step) -> Bound | None:
    """The bound of ``step``; None where none is known, and where values of rows that are not finite go on into other slopes."""
    argument = _argument(step)
    if argument is None or not _ends(step, argument):
        return None
    return Bound(step, 1 if step.name == "div" else 0)


def is_steep_at_nan(step: Step, ranges: Ranges) -> bool:
    """Whether slopes of ``step`` are finite but where its value is NaN."""
    argument = _argument(step)
    if argument is not None:
        found = _source(argument)
        return found is not None and not found[2]  # else the exponential of infinity may be among them
    return len(step.inputs) == 1 and ranges.is_steep_at_nan(step)


def _argument(step: Step) -> Slot | None:
    """The ``x - max(x)`` that ``step`` is the exponential of, or the logarithm or quotient of a sum of exponentials of."""
    if step.name == "exp":
        return step.inputs[0] if _source(step.inputs[0]) is not None else None
    if step.name not in ("log", "div"):
        return None
    total = step.inputs[-1]
    while total.origin is not None and total.origin.name in ("broadcast_in_dim", "reshape", "abs"):
        total = total.origin.inputs[0]
    made = total.origin
    if made is None or made.name != "reduce_sum":
        return None
    terms, chosen = _without_choice(made.inputs[0], 0.0)
    if terms.origin is None or terms.origin.name != "exp":
        return None
    argument = terms.origin.inputs[0]
    found = _source(argument)
    if found is None or found[2] or not set(found[1]) <= set(made.eqn.params["axes"]):
        return None
    filled = _without_choice(found[0], -np.inf)[1]
    return argument if chosen is None or chosen is filled else None


def _source(slot: Slot) -> tuple[Slot, Sequence[int], bool] | None:
    """Of ``x - max(x)``, what the maximum is taken of, along what, and whether it is replaced where it is infinite."""
    step = slot.origin
    if step is None or step.name != "sub":
        return None
    x, top = step.inputs
    placed: list[Step] = []
    replaced = False
    while (made := top.origin) is not None and made.name != "reduce_max":
        if made.name == "broadcast_in_dim":
            placed.append(made)
        elif made.name == "select_n":
            replaced = True
            if made.inputs[0].origin is None or made.inputs[0].origin.name != "is_finite":
                return None
        elif made.name not in _SAME and not (made.name == "max" and _is_all(made.inputs[0], -np.inf)):
            return None
        top = made.inputs[-1]
    if made is None or not _alike(made.inputs[0], x) or x.shape != slot.shape:
        return None
    axes = made.eqn.params["axes"]
    return (made.inputs[0], axes, replaced) if _is_beside(axes, placed, x.shape) else None


def _is_beside(axes: Sequence[int], placed: Sequence[Step], shape: Sequence[Any]) -> bool:
    """Whether a reduction along ``axes`` stands beside what it reduces once it is broadcast."""
    at: list[int | None] = [d for d in range(len(shape)) if d not in axes]
    for step in reversed(placed):
        dims = step.eqn.params["broadcast_dimensions"]
        at = [at[dims.index(d)] if d in dims else None for d in range(len(step.outputs[0].shape))]
    return len(at) in (0, len(shape)) and all(
        own == d if own is not None else d in axes or shape[d] == 1 for d, own in enumerate(at)
    )


def _without_choice(slot: Slot, number: float) -> tuple[Slot, Slot | None]:
    """What a choice beside ``number`` takes where its condition holds, and the condition; the slot itself where it is no such choice."""
    step = slot.origin
    if (
        step is None
        or step.name != "select_n"
        or len(step.inputs) != 3
        or not _is_all(step.inputs[1], number)
    ):
        return slot, None
    return step.inputs[2], step.inputs[0]


def _is_all(slot: Slot, number: float) -> bool:
    while (
        slot.known is None
        and slot.origin is not None
        and slot.origin.name in ("broadcast_in_dim", "convert_element_type")
    ):
        slot = slot.origin.inputs[0]
    return slot.known is not None and bool(np.all(np.asarray(slot.known) == number))


def _alike(a: Slot, b: Slot, most: int = MOST_ALIKE) -> bool:
    """Whether two arrays are one, or made of the same in the same way."""
    if a is b:
        return True
    if a.known is not None and b.known is not None:
        return a.shape == b.shape and np.array_equal(a.known, b.known)
    made, other = a.origin, b.origin
    if not most or made is None or other is None or made.name != other.name or a.shape != b.shape:
        return False
    if made.name == "select_n":
        chosen = made.inputs[0] is other.inputs[0] and len(made.inputs) == len(other.inputs) == 3
        pairs = zip(made.inputs[1:], other.inputs[1:], strict=True) if chosen else ()
        return chosen and all(_alike(s, t, most - 1) or _are_both(s, t, -np.inf) for s, t in pairs)
    return made.eqn.params == other.eqn.params and all(
        _alike(s, t, most - 1) for s, t in zip(made.inputs, other.inputs, strict=True)
    )


def _are_both(a: Slot, b: Slot, number: float) -> bool:
    return _is_all(a, number) and _is_all(b, number)


def _ends(step: Step, argument: Slot) -> bool:
    """Whether the value of a row that is not finite is in no slope of another array.

    Functions of one operand send what they multiply back to where it is dropped. What is added to others has to be left out by a choice, and
    what meets the argument is NaN there anyway.
    """
    alone: dict[Slot, bool] = {step.outputs[0]: True}
    open_ = [step.outputs[0]]
    while open_:
        slot = open_.pop()
        for reader in dict.fromkeys(slot.readers):
            if not any(is_inexact(out.dtype) for out in reader.outputs):
                continue
            if reader.name in _ADDS and argument in reader.inputs:
                continue
            if reader.name == "select_n" and reader.inputs[0] is not slot:
                continue
            pure = alone[slot] and all(s in alone or s.known is not None for s in reader.inputs)
            of_rows = reader.name == "div" and _argument(reader) is argument
            one = pure and reader.name in ELEMENTWISE and len(reader.inputs) == 1
            scaled = reader.name in ("mul", "div") and all(
                s is slot or s.known is not None for s in reader.inputs
            )
            scaled = scaled and not (reader.name == "div" and reader.inputs[1] is slot)
            if not (one or of_rows or scaled or reader.name in _ADDS or reader.name in _MOVES):
                return False
            (out,) = reader.outputs
            if out not in alone or alone[out] > (pure or of_rows):
                alone[out] = pure or of_rows
                open_.append(out)
    return True


def _finite_slope(known: Bound) -> Callable[..., Any]:
    step, at = known.step, known.operand

    @jax.custom_jvp
    def kept(*operands: Any) -> Any:
        return bound(step.eqn, operands)[0]

    @kept.defjvp
    def slope(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        own, operand = kept(*primals), primals[at]
        if step.name == "exp":
            zero = jnp.zeros((), own.dtype)
            holds = own <= 1
            return own, jnp.where(holds, jnp.where(holds, own, zero) * tangents[0], zero)
        filled = [*primals]
        filled[at] = jnp.where(operand >= 1, operand, jnp.ones((), operand.dtype))
        return own, jax.jvp(lambda *x: bound(step.eqn, x)[0], filled, [*tangents])[1]

    return kept

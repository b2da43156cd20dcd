"""Choices that NaN makes itself: where the value of a step is NaN, a comparison with it fails, and the choice by it takes what the step makes.

``where(p < 1e-15, 1e-15, p)`` leaves no NaN of ``p`` out. A step whose slope is infinite or NaN only where its value is NaN needs no guard before it.

Choices that leave out what is infinite, those that come before anything has a derivative, and those that are known to leave out nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.equations.known import computed
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.bounds import is_steep_at_nan
from jaxte.frontends.jaxpr.guards.needed import Needs
from jaxte.frontends.jaxpr.guards.slopes import CALLS
from jaxte.frontends.jaxpr.guards.uses import (
    MASKS_MOVE,
    MOST_ALIKE,
    ONE_BY_ONE,
    Use,
    leaves_out,
    made_of,
)
from jaxte.frontends.jaxpr.guards.values import Ranges
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.limits import TABLE

# of which all that is made of NaN is NaN
_ARITHMETIC = ("add", "add_any", "sub", "mul", "div", "neg", "abs", "square", "sqrt", "rsqrt", "copy")
_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log1p", "tanh", "logistic", "sin", "cos", "erf", "convert_element_type",
)  # fmt: skip
_KEEPS_NAN = frozenset([*_ARITHMETIC, *_FUNCTIONS, *MASKS_MOVE, "rev", "reduce_sum"])
_FAILS = dict.fromkeys(("eq", "lt", "le", "gt", "ge"), False) | {"ne": True}


def leaves_no_nan(step: Step, needs: Needs, ranges: Ranges, still: Set[Slot]) -> bool:
    """Whether ``step`` has finite slopes where its value is no NaN, and no choice leaves NaN out.

    What is the same in each turn of a loop, as the arrays in ``still`` are, is not asked about choices that take all or nothing in a turn.
    """
    if not is_steep_at_nan(step, ranges):
        return False
    (out,) = step.outputs
    seen: dict[Slot, tuple[Slot, ...]] = {out: (out,)}
    stack = [out]
    while stack:
        slot = stack.pop()
        if not needs.partial(slot):
            return True
        for use in needs.uses(slot):
            made = use.step.outputs[0]
            if made not in seen and _is_taken(use, seen[slot], still if out in still else set()):
                beside = use.step.name in ONE_BY_ONE and made.shape == slot.shape
                seen[made] = (*seen[slot], made) if beside else (made,)
                stack.append(made)
    return False


def meets_no_derivative(step: Step, needs: Needs, moves: Set[Slot]) -> bool:
    """Whether no slope is made of the elements of ``step`` that are left out: nothing that is made of them is among what ``moves`` but by a choice
    that takes none of them, as in ``x * where(n > 0, 1 / n, 0)`` of counts ``n``.
    """
    stack, seen = list(step.outputs), set[Slot]()
    while stack:
        slot = stack.pop()
        if slot in moves:
            return False
        if slot in seen or not needs.partial(slot):
            continue
        seen.add(slot)
        for use in needs.uses(slot):
            made = use.step.outputs
            drops = use.step.name == "select_n" and leaves_out(use) and not needs.partial(made[0])
            stack += [] if drops else made
    return True


def answers_for_infinity(step: Step, needs: Needs) -> bool:
    """Whether ``step`` is a function with a rule of its own, of which choices leave out only what is infinite, as the rule of ``jnp.logaddexp`` does:
    what its slope is where it has no number its rule says, and choices by that are made for it.
    """
    says = needs.left_by_choices(step.outputs[0]) if step.name in CALLS else {}
    return bool(says) and all(
        not taken and _asks_for_infinity(by, step.outputs[0]) for by, taken in says.items()
    )


def _asks_for_infinity(by: Slot, own: Slot) -> bool:
    test = by.origin
    if test is None or test.name != "eq" or own not in test.inputs:
        return False
    (other,) = [slot for slot in test.inputs if slot is not own] or (own,)
    return other.known is not None and bool(np.all(np.isposinf(other.known)))


def _is_taken(use: Use, nan: tuple[Slot, ...], still: Set[Slot]) -> bool:
    """Whether a reader makes NaN of it, where the arrays in ``nan``, which are beside the operand, are NaN."""
    step = use.step
    if step.name in _KEEPS_NAN:
        return is_inexact(step.outputs[0].dtype)
    if step.name != "select_n" or use.operand == 0:
        return False
    by = step.inputs[0]
    if still and by not in still and prod(by.shape) == 1:
        return True
    holds = _of_nan(by, {made_of(slot) for slot in nan})
    return holds is not None and use.operand == 1 + holds


def _of_nan(by: Slot, nan: Set[object], most: int = MOST_ALIKE) -> bool | None:
    """Whether a condition holds where arrays that are made as one of ``nan`` are NaN; None where it may, or may not."""
    step = by.origin
    if step is None or by.known is not None or not most:
        return None
    if step.name in _FAILS:
        return _FAILS[step.name] if any(made_of(s) in nan for s in step.inputs) else None
    if step.name not in ("not", "and", "or"):
        return None
    found = [_of_nan(own, nan, most - 1) for own in step.inputs]
    if step.name == "not":
        return None if found[0] is None else not found[0]
    decides = step.name == "or"
    return decides if decides in found else None if None in found else not decides


def is_needed_in_whole(step: Step, needs: Needs) -> bool:
    """Whether known conditions leave no element of the result out: of a row some element of which each is taken, for instance."""
    (out,) = step.outputs
    says = needs.says(out)
    if not says or any(slot.known is None for slot in says) or step.has_symbols or prod(out.shape) > TABLE:
        return False
    return _holds(lambda: jnp.all(needs.mask(out, lambda slot: slot.known, {})))


def _holds(condition: Callable[[], Any]) -> bool:
    """A condition of nothing but what is known, by NumPy, since XLA would compile each of its operations; by XLA where one has no row for it."""
    (known,) = computed(jax.make_jaxpr(condition)(), (), TABLE)
    if known is not None:
        return bool(known)
    with jax.ensure_compile_time_eval():
        return bool(condition())

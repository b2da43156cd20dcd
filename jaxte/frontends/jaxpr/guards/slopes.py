"""Primitives whose slopes are infinite or NaN somewhere: one row each, with numbers at which they are finite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxte.frontends.jaxpr.equations.steps import Slot, Step, flat, slot_of
from jaxte.frontends.jaxpr.guards.needed import Needs, of_repeated
from jaxte.frontends.jaxpr.rules.elementwise import ELEMENTWISE
from jaxte.lang.dtypes import is_inexact

CALLS = ("custom_jvp_call", "custom_vjp_call")
_BODIES = ("call_jaxpr", "fun_jaxpr", "jaxpr")  # the parameter that holds the function

# by the operand that makes the slope infinite, and a number for it at which the slope is finite
_STEEP: dict[tuple[int, float], tuple[str, ...]] = {
    (0, 1.0): ("log", "sqrt", "rsqrt", "cbrt", "lgamma", "digamma", "pow", "integer_pow"),
    (0, 0.0): ("log1p", "tan", "asin", "acos", "atanh", "erf_inv"),
    (0, 2.0): ("acosh",),
    (1, 1.0): ("div", "rem", "atan2"),
}
# those whose values go beyond the largest number
_LARGE = {(0, 0.0): ("exp", "exp2", "expm1", "sinh", "cosh")}
_ROWS = {name: at for rows in (_STEEP, _LARGE) for at, names in rows.items() for name in names}
_MOST_BETWEEN = 12  # functions of single elements between a choice and what it has made harmless
# for the operands of functions with a rule of their own
_WITHIN = 0.5


@dataclass(frozen=True)
class Guard:
    """What a step is computed of where its result is not needed.

    Attributes:
        step: a step whose slope may be infinite or NaN.
        numbers: its operands that make it so, each with a number at which the slope is finite.
        inside: of a function with a rule of its own.
    """

    step: Step
    numbers: Mapping[int, float]
    inside: Inside | None = None

    def masks(self, mask: Any) -> dict[int, Any]:
        """Which elements of each operand go into elements of the result at which ``mask`` holds."""
        if self.inside is not None:
            return {n: self.inside.mask(n, mask) for n in self.numbers}
        return {n: of_repeated(mask, self.step.inputs[n].shape) for n in self.numbers}


def guard_of(step: Step, needs: Needs) -> Guard | None:
    """The guard that ``step`` needs, beside the choices that its operands went through already."""
    if step.is_known or len(step.outputs) != 1 or not is_inexact(step.outputs[0].dtype):
        return None
    inside = Inside(step.eqn) if step.name in CALLS else None
    row = dict([_ROWS[step.name]]) if step.name in _ROWS else {}
    if inside is not None:
        row = dict.fromkeys(inside.operands, _WITHIN)
    elif step.name == "integer_pow" and step.eqn.params["y"] > 0:
        row = {}
    infinite = _infinite_factors(step)
    if not row and not infinite:
        return None
    says = needs.says(step.outputs[0])
    numbers = {n: number for n, number in row.items() if _moves(step.inputs[n], says)} | infinite
    return Guard(step, numbers, inside) if numbers else None


def _infinite_factors(step: Step) -> dict[int, float]:
    """The constants of a product that are not finite everywhere, which are its slopes."""
    if step.name != "mul":
        return {}
    return {
        n: 1.0 for n, s in enumerate(step.inputs) if s.known is not None and not np.isfinite(s.known).all()
    }


def _moves(operand: Slot, says: Iterable[Slot], most: int = _MOST_BETWEEN) -> bool:
    """Whether an operand is no constant, and not made of what a choice by one of ``says`` has made harmless.

    Where there are functions of single elements between the choice and the operand, NaN may flow back through these; a choice between what is
    differentiated and a constant drops it.
    """
    if operand.known is not None or not is_inexact(operand.dtype):
        return False
    made = operand.origin
    if made is None or not most:
        return True
    if made.name == "select_n":
        between = most < _MOST_BETWEEN
        constant = sum(_moves(s, (), 1) for s in made.inputs[1:]) < 2
        return (between and not constant) or not any(_same(made.inputs[0], own) for own in says)
    if made.name not in ELEMENTWISE:
        return True
    return any(_moves(s, says, most - 1) for s in made.inputs)


def _same(a: Slot, b: Slot) -> bool:
    """Whether two arrays are one, or made of the same by the same function."""
    if a is b:
        return True
    if a.origin is None or b.origin is None or a.origin.name != b.origin.name:
        return False
    if a.origin.name not in ELEMENTWISE or a.origin.eqn.params != b.origin.eqn.params:
        return False
    return all(
        s is t or (s.known is not None and t.known is not None and np.array_equal(s.known, t.known))
        for s, t in zip(a.origin.inputs, b.origin.inputs, strict=True)
    )


class Inside:
    """A call of a function with a rule of its own, such as ``jax.nn.softmax``.

    Attributes:
        operands: those of which the function needs a part, where a part of its result is needed.
    """

    def __init__(self, eqn: Any) -> None:
        closed = next(eqn.params[name] for name in _BODIES if name in eqn.params)
        jaxpr = closed.jaxpr
        slots = {v: Slot(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)}
        steps = [step for _, found in flat(jaxpr.eqns, slots) for step in found]
        self._inputs = [slots[v] for v in jaxpr.invars]
        self._result = slot_of(jaxpr.outvars[0], slots)
        self._needs = Needs(steps, [], [self._result], self._inputs)
        steep = any(step.name in _ROWS or step.name in CALLS for step in steps)
        self.operands = [n for n, s in enumerate(self._inputs) if steep and self._is_asked(s)]

    def mask(self, operand: int, mask: Any) -> Any:
        """Which elements of an operand are needed for the elements of the result at which ``mask`` holds."""
        return self._needs.mask(self._inputs[operand], lambda slot: slot.known, {self._result: mask})

    def _is_asked(self, slot: Slot) -> bool:
        return self._needs.partial(slot) and all(s.known is not None for s in self._needs.says(slot))

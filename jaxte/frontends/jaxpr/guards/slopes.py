"""Primitives whose slopes are infinite or NaN somewhere: one row each, with numbers at which they are finite; and steps that are computed of these.

Powers of square roots, whose slopes are finite at 0: ``sqrt(u)**2`` has the slope of ``u``, where a chain rule multiplies 0 by infinity.

Guarded steps: computed of harmless numbers, or with the values that they have and slopes that are taken of harmless numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.bridge.jaxprs import bound
from jaxte.frontends.jaxpr.equations.called import kind_of
from jaxte.frontends.jaxpr.equations.stands import as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step, flat, slot_of
from jaxte.frontends.jaxpr.guards.needed import Needs
from jaxte.frontends.jaxpr.guards.uses import MASKS_MOVE, STEEP, of_repeated
from jaxte.frontends.jaxpr.guards.values import Ranges
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import filled_in
from jaxte.lang.limits import LEVELS

CALLS = ("custom_jvp_call", "custom_vjp_call")
_BODIES = ("call_jaxpr", "fun_jaxpr", "jaxpr")  # the parameter that holds the function

# those whose values go beyond the largest number
_LARGE = {(0, 0.0): ("exp", "exp2", "expm1", "sinh", "cosh")}
_ROWS = {name: at for rows in (STEEP, _LARGE) for at, names in rows.items() for name in names}
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


def guard_of(step: Step, needs: Needs, ranges: Ranges) -> Guard | None:
    """The guard that ``step`` needs, beside the choices that its operands went through already, and what is known of their values."""
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
    says = needs.says(step.outputs[0]) or None  # what slices leave out, no choice takes
    numbers = {n: number for n, number in row.items() if ranges.is_steep(step, n, says)} | infinite
    return Guard(step, numbers, inside) if numbers else None


def _infinite_factors(step: Step) -> dict[int, float]:
    """The constants of a product that are not finite everywhere, which are its slopes."""
    if step.name != "mul":
        return {}
    return {
        n: 1.0 for n, s in enumerate(step.inputs) if s.known is not None and not np.isfinite(s.known).all()
    }


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


_SAME_SQUARE = ("neg", "abs", "copy")
_SQUARED = ("mul", "div", "select_n")  # with other operands, which are squared as well
# the operands by which a root may go into a step that moves or scales it
_ROOTS_AT = dict.fromkeys((*MASKS_MOVE, *_SAME_SQUARE, "div"), (0,)) | {"mul": (0, 1), "select_n": (1, 2)}


@dataclass(frozen=True)
class Root:
    """``step`` raises a root, scaled and moved by the steps of ``chain``, to ``power``, which is at least 2.

    Attributes:
        of: what the root is taken of.
        chain: the steps from the root to the power, each with the operand that comes from the root.
    """

    step: Step
    power: float
    of: Slot
    chain: tuple[tuple[Step, int], ...]

    def reads(self) -> list[Slot]:
        """What the square of the root is made of."""
        factors = [s for step, at in self.chain for n, s in enumerate(step.inputs) if n != at]
        return [self.of, *factors]

    def compute(self, root: Any, read: Callable[[Slot], Any]) -> Any:
        """The power as it is, with the slope that it has as a power of the square of ``root``."""

        def of_square(root: Any, square: Any, *factors: Any) -> Any:
            given = iter(factors)
            for step, at in self.chain:
                square = _square_after(step, at, square, given)
            return _power(self.power, jax.lax.stop_gradient(root), square)

        return in_place_of(self.step.eqn, of_square, root, *map(read, self.reads()))


def roots_of(steps: Iterable[Step], needs: Needs) -> dict[Step, Root]:
    """The powers of roots among ``steps`` that a derivative flows through."""
    found = ((step, _root_of(step)) for step in steps if needs.is_differentiated(step))
    return {step: root for step, root in found if root is not None}


def _root_of(step: Step) -> Root | None:
    power = _exponent(step)
    if power is None or power < 2 or step.outputs[0].dtype.startswith("complex"):
        return None
    found = _from_root(step.inputs[0])
    return None if found is None else Root(step, power, found[0], tuple(found[1]))


# Functions between a root and its power.
def _from_root(slot: Slot, most: int = LEVELS) -> tuple[Slot, list[tuple[Step, int]]] | None:
    """What the root that ``slot`` is made of is taken of, and the steps that move and scale it, each with its operand that comes from the root."""
    made = slot.origin
    if made is None or not most:
        return None
    if made.name == "sqrt":
        return made.inputs[0], []
    for at in _ROOTS_AT.get(made.name, ()):
        found = _from_root(made.inputs[at], most - 1) if at < len(made.inputs) else None
        if found is not None:
            return found[0], [*found[1], (made, at)]
    return None


def _exponent(step: Step) -> float | None:
    """The power that ``step`` raises its first operand to."""
    match step.name:
        case "integer_pow":
            return step.eqn.params["y"]
        case "square":
            return 2
        case "mul" if step.inputs[0] is step.inputs[1]:
            return 2
        case "pow" if step.inputs[1].known is not None and np.ndim(step.inputs[1].known) == 0:
            return float(step.inputs[1].known)
    return None


def _square_after(step: Step, at: int, square: Any, factors: Any) -> Any:
    """The square of what ``step`` makes, by that of its operand ``at``."""
    if step.name in _SAME_SQUARE:
        return square
    others = [next(factors) for n in range(len(step.inputs)) if n != at]
    if step.name in _SQUARED:
        others = [jax.lax.square(other) if is_inexact(str(other.dtype)) else other for other in others]
    return as_it_stands(step.eqn, [*others[:at], square, *others[at:]])[0]


def _power(power: float, root: Any, square: Any) -> Any:
    """``root**power``, by ``square``, which is the square of ``root``, in derivatives."""

    @jax.custom_jvp
    def kept(root: Any, square: Any) -> Any:
        return _raised(root, power)

    @kept.defjvp
    def slope(primals: Any, tangents: Any) -> tuple[Any, Any]:
        root, square = primals
        if power == 2:
            return kept(root, square), tangents[1]
        below = _power(power - 2, root, square) if power >= 4 else _raised(jnp.sqrt(square), power - 2)
        return kept(root, square), below * tangents[1] * jnp.asarray(power / 2, root.dtype)

    return kept(root, square)


def _raised(root: Any, power: float) -> Any:
    whole = float(power).is_integer()
    return (
        jax.lax.integer_pow(root, int(power)) if whole else jax.lax.pow(root, jnp.asarray(power, root.dtype))
    )


def kind_of_guard(guard: Guard) -> Hashable:
    """Equal for guards of equal equations by equal numbers; None for those of functions with a rule of their own."""
    kind = None if guard.inside is not None else kind_of(guard.step.eqn)
    return None if kind is None else (kind, tuple(guard.numbers.items()))


def filled(guard: Guard, mask: Any, operands: Sequence[Any]) -> list[Any]:
    """The operands with harmless numbers where ``mask`` does not hold."""
    filled = list(operands)
    for n, own in guard.masks(mask).items():
        filled[n] = jnp.where(own, operands[n], jnp.asarray(guard.numbers[n], operands[n].dtype))
    return filled


def guarded_slope(guard: Guard, in_whole: bool = False) -> Callable[..., Any]:
    """A guarded step of which the value as it stands is there: that is its value where it is needed, and its slope is taken of harmless numbers.

    Where a result is compared as well, all that leads to the comparison would be computed twice otherwise.

    Args:
        in_whole: whether its value is read at other elements too.
    """

    @jax.custom_jvp
    def kept(mask: Any, value: Any, *operands: Any) -> Any:
        return value if in_whole else jnp.where(mask, value, jnp.ones((), value.dtype))

    @kept.defjvp
    def slope(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (mask, value, *operands), moved = primals, tangents[2:]
        own = kept(mask, value, *operands)
        if guard.step.name == "exp":  # its own slope
            return own, jnp.where(mask, own, jnp.zeros((), value.dtype)) * moved[0]
        moves = [n for n, x in enumerate(operands) if is_inexact(str(x.dtype))]
        at_harmless = filled(guard, mask, operands)

        def of_moving(*moving: Any) -> Any:
            return bound(guard.step.eqn, filled_in(at_harmless, moves, moving))[0]

        return own, jax.jvp(of_moving, [at_harmless[n] for n in moves], [moved[n] for n in moves])[1]

    return kept

"""Powers of square roots, whose slopes are finite at 0: ``sqrt(u)**2`` has the slope of ``u``, where a chain rule multiplies 0 by infinity."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxte.frontends.jaxpr.equations.stands import as_it_stands, in_place_of
from jaxte.frontends.jaxpr.equations.steps import Slot, Step
from jaxte.frontends.jaxpr.guards.needed import MASKS_MOVE, Needs
from jaxte.lang.dtypes import is_inexact

_SAME_SQUARE = ("neg", "abs", "copy")
_SQUARED = ("mul", "div", "select_n")  # with other operands, which are squared as well
# the operands by which a root may go into a step that moves or scales it
_ROOTS_AT = dict.fromkeys((*MASKS_MOVE, *_SAME_SQUARE, "div"), (0,)) | {"mul": (0, 1), "select_n": (1, 2)}
_MOST_BETWEEN = 6  # functions between a root and its power


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


def _from_root(slot: Slot, most: int = _MOST_BETWEEN) -> tuple[Slot, list[tuple[Step, int]]] | None:
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

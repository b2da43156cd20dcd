"""Guarded steps: computed of harmless numbers, or with the values that they have and slopes that are taken of harmless numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxte.bridge.jaxprs import bound
from jaxte.frontends.jaxpr.equations.called import kind_of
from jaxte.frontends.jaxpr.guards.slopes import Guard
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.graphs import filled_in


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

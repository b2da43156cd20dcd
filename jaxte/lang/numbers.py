"""Numbers that are known now: what an array of one element holds, and what of arithmetic with numbers is decided before any dtype is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxte.lang import dtypes
from jaxte.lang.errors import DefinitionError
from jaxte.lang.interning import Scalar

_ROUNDING = 0.02  # of the larger of two numbers, which bfloat16 may round by 0.004 each
_LEAST, _MOST = 1e-4, 1e4  # what float16 has in full precision, too

# on indices, which are integers of any size
INTEGER_FOLDS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "maximum": max,
    "minimum": min,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "nonzero": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def plain_number(value: Scalar) -> Scalar:
    """A number of Python that is no instance of a class of its own, as ``np.float64`` and the members of an IntEnum are."""
    return next(
        kind(value)  # type: ignore[arg-type]
        for kind in (bool, int, float, complex)
        if isinstance(value, kind)
    )


def number_of(value: Any) -> Any:
    """The number that an array of one element holds.

    Raises:
        DefinitionError: JAX traces it. Under ``jax.grad`` alone it has a value all the same, whose derivative would be lost.
    """
    try:
        np.asarray(value)  # which tracers of every kind refuse
        return value.item()
    except TypeError:
        raise DefinitionError(
            f"{value!r} has no value yet: it is traced by jax.jit, jax.grad or another transformation; give it to the "
            "te.function as an argument, an array of shape (), and read it as s[()]"
        ) from None


def compared(name: str, left: float, right: float) -> bool | None:
    """A comparison of two numbers that no rounding to a dtype brings together; None where one might."""
    if abs(left - right) <= _ROUNDING * max(abs(left), abs(right)):
        return None
    return bool(INTEGER_FOLDS[name](left, right))


def in_every_dtype(value: Scalar) -> float | None:
    """``value`` where every dtype of real numbers has it up to rounding, else None."""
    if isinstance(value, (bool, complex)):
        return None
    return float(value) if value == 0 or _LEAST < abs(value) < _MOST else None


def fits(dtype: str, value: Any) -> bool:
    """Whether an integer ``dtype`` has ``value``."""
    low, high = dtypes.INTEGER_LIMITS[dtype]
    return bool(low <= value <= high)

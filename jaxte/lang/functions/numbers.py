"""Numbers of a dtype, and expressions as another dtype."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from jaxte.lang import expr
from jaxte.lang.checks import wants_arguments
from jaxte.lang.dtypes import (
    DtypeLike,
    dtype_name,
    is_complex,
    is_inexact,
    is_integer,
    number_of,
    plain_number,
)
from jaxte.lang.errors import DefinitionError
from jaxte.lang.expr import Const, Expr
from jaxte.lang.nodes import AnnotatedArray
from jaxte.lang.operators import Operand

__all__ = ["const", "cast"]

Result = TypeVar("Result")
ArrayT = TypeVar("ArrayT", bound=AnnotatedArray)


class Numeric(Protocol):
    """An array of one element."""

    @property
    def size(self) -> int: ...


Number: TypeAlias = bool | int | float | complex | np.generic
Operands: TypeAlias = Operand[Any, Result]  # expressions, or Tensors, which take arrays beside them


@wants_arguments
def const(value: Number | Numeric, dtype: DtypeLike | None = None) -> Const:
    """A number as an expression of dtype ``dtype``; without it a number that takes the dtype of what it meets.

    Y = te.compute((8,), lambda i: X[i] * te.const(0.1, "float64"))
    """
    scalar = value
    if not isinstance(value, (bool, int, float, complex)) and getattr(value, "size", 0) == 1:
        scalar = number_of(value)
    if not isinstance(scalar, (bool, int, float, complex)):
        raise DefinitionError(
            f"te.const takes a number, not {type(value).__name__} {value!r}; index it, or use te.cast"
        )
    scalar = plain_number(scalar)
    if dtype is None:
        return Const(scalar)
    name = dtype_name(dtype)
    if is_complex(name):
        return Const(complex(scalar), name)
    if isinstance(scalar, complex):
        raise DefinitionError(f"te.const({value!r}, {name!r}): a complex number needs a complex dtype")
    if is_inexact(name):
        return Const(float(scalar), name)
    return Const(_whole(scalar, name) if is_integer(name) else bool(scalar), name)


def _whole(value: float, dtype: str) -> int:
    """``value`` without its fraction, as an integer that ``dtype`` holds."""
    limits = np.iinfo(dtype)
    if not math.isfinite(value) or not limits.min <= int(value) <= limits.max:
        raise DefinitionError(
            f"te.const({value!r}, {dtype!r}): {dtype} holds {limits.min} to {limits.max}; give another dtype"
        )
    return int(value)


@overload
def cast(x: Operand[Number, Result], dtype: DtypeLike) -> Result: ...
@overload
def cast(x: ArrayT, dtype: DtypeLike) -> ArrayT: ...
@overload
def cast(x: Number, dtype: DtypeLike) -> Expr: ...
@wants_arguments
def cast(x: Any, dtype: DtypeLike) -> Any:
    """``x`` as ``dtype``. The derivative is 1 between floating dtypes and zero from or to integers.

    Y = te.compute((8,), lambda i: X[i] * te.cast(i, "float32"))
    """
    return expr.cast(x if isinstance(x, Operand) else const(x, dtype), dtype_name(dtype))

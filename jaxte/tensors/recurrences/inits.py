"""What a user gives as the values before the first position of a recurrence: numbers, and arrays, which are Tensors."""

from __future__ import annotations

from typing import Any

from jaxte.lang import dtypes
from jaxte.lang.checks import described
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError
from jaxte.lang.expr import Const, Expr, cast
from jaxte.lang.text import text
from jaxte.tensors.bodies.functions import check_result
from jaxte.tensors.recurrences.node import State
from jaxte.tensors.tensor import Tensor, of_array


def with_values(init: Any, name: str) -> Any:
    """``init``, an array of numbers as a Tensor."""
    is_array = (
        hasattr(init, "__array__") and not isinstance(init, (Tensor, Expr)) and getattr(init, "ndim", 0) > 0
    )
    return of_array(init, f"{name}_init") if is_array else init


def number_of(init: Any, state: State) -> Expr:
    try:
        return check_result(init, state.name)
    except DefinitionError:
        raise ArgumentError(
            f"init of {state.name} is {described(init)}; give a number, a function of the other axes, an array or a Tensor; of several tensors a tuple, "
            "one for each"
        ) from None


def begun(value: Expr, state: State) -> Expr:
    """What stands before the first position in the dtype of ``state``, unless that would lose a fraction."""
    number = value.value if isinstance(value, Const) else None
    is_whole = isinstance(number, float) and number.is_integer()
    if dtypes.is_inexact(value.dtype) and not dtypes.is_inexact(state.dtype) and not is_whole:
        raise DtypeError(
            f"init of {state.name} is `{text(value)}` of dtype {value.dtype}, {state.name} is {state.dtype}; cast init with te.cast, or give a "
            "floating dtype"
        )
    return cast(value, state.dtype)

"""Choices between scalars, and the logic of their conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.dtypes import is_inexact
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError
from jaxte.lang.expr import Axis, Const, Expr, ScalarLike, apply, as_expr
from jaxte.lang.functions.numbers import ArrayT, Number, Result
from jaxte.lang.operators import NOT_EQUAL, Operand
from jaxte.lang.scalars.rows import Function
from jaxte.lang.scalars.table import TABLE

__all__ = [
    "select",
    "where",
    "if_then_else",
    "choose",
    "logical_and",
    "logical_or",
    "logical_not",
    "logical_xor",
]


@overload
def select(  # type: ignore[overload-overlap]
    cond: ArrayT, a: ArrayT | Number, b: ArrayT | Number
) -> ArrayT: ...
@overload
def select(cond: bool, a: ArrayT, b: ArrayT | Number) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def select(cond: bool, a: Number, b: ArrayT) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def select(cond: ScalarLike, a: ScalarLike, b: ScalarLike) -> Expr: ...
@overload
def select(
    cond: Operand[Number, Result], a: Operand[Number, Result] | Number, b: Operand[Number, Result] | Number
) -> Result: ...
@overload
def select(cond: Number, a: Operand[Number, Result], b: Operand[Number, Result] | Number) -> Result: ...
@overload
def select(cond: Number, a: Number, b: Operand[Number, Result]) -> Result: ...
@wants_arguments
def select(cond: Any, a: Any, b: Any) -> Any:
    """``a`` where ``cond`` holds, else ``b``.

    The one that is not taken contributes nothing, neither to the value nor to a derivative, and may read out of
    range:

        Y = te.compute((8,), lambda i: te.select(i >= 1, X[i - 1], 0.0))
    """
    return apply(TABLE["select"].op, _predicate(cond), a, b)


where = if_then_else = select


@wants_arguments
def choose(index: Expr | int, choices: Sequence[ScalarLike]) -> Expr:
    """``choices[index]``, one of several scalars by an index expression, as ``numpy.choose`` with ``mode="clip"``.

    Args:
        index: an integer expression; below 0 it is the first of the choices, beyond their number the last.
        choices: numbers or scalar expressions, at least one.

    Raises:
        DefinitionError: no choices, or an axis that is longer than they are many.
        DtypeError: an index that is no integer.

    In an index it makes strides and offsets that differ from one position to the next. A dilation of its own for
    each head of sliding-window attention:

        >>> K, Q = te.placeholder((3, 40, 16), name="K"), te.placeholder((3, 32, 16), name="Q")
        >>> c = te.reduce_axis((0, 16), "c")
        >>> S = te.compute(
        ...     (3, 32, 5), lambda h, i, k: te.sum(Q[h, i, c] * K[h, i + te.choose(h, (1, 2, 2)) * k, c], axis=c), "S"
        ... )
    """
    if not isinstance(index, Operand) and not hasattr(index, "__index__"):
        raise ArgumentError(f"the index of te.choose is {described(index)}; give an index expression")
    if isinstance(index, Operand) and is_inexact(index.dtype):
        raise DtypeError(
            f"the index of te.choose is {described(index)} of dtype {index.dtype}; give an integer, as te.cast(..., 'int32') makes one"
        )
    listed = list(choices) if isinstance(choices, (list, tuple, np.ndarray, range)) else None
    if listed is None:
        raise ArgumentError(
            f"the choices of te.choose are {described(choices)}; give a tuple of numbers or expressions"
        )
    if not listed:
        raise DefinitionError("te.choose has no choices; give one number or expression for each position")
    if isinstance(index, Axis) and isinstance(index.hi, Const) and index.hi.value > len(listed):  # type: ignore[operator]
        raise DefinitionError(
            f"te.choose({index.name}, ...) has {len(listed)} choices, but {index.name} goes up to "
            f"{int(index.hi) - 1}; give one choice for each position"
        )
    result = listed[-1]
    for end in range(len(listed) - 1, 0, -1):
        if as_expr(listed[end - 1]) is not as_expr(listed[end]):
            result = select(index < end, listed[end - 1], result)
    return result


@overload
def logical_and(a: ArrayT, b: ArrayT | Number, *more: ArrayT | Number) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def logical_and(a: ScalarLike, b: ScalarLike, *more: ScalarLike) -> Expr: ...
@overload
def logical_and(
    a: Operand[Number, Result], b: Operand[Number, Result] | Number, *more: Operand[Number, Result] | Number
) -> Result: ...
@wants_arguments
def logical_and(a: Any, b: Any, *more: Any) -> Any:
    """Whether all of the conditions hold; numbers count as ``!= 0``. The same as ``a & b`` on conditions."""
    return _join(TABLE["logical_and"], a, b, *more)


@overload
def logical_or(a: ArrayT, b: ArrayT | Number, *more: ArrayT | Number) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def logical_or(a: ScalarLike, b: ScalarLike, *more: ScalarLike) -> Expr: ...
@overload
def logical_or(
    a: Operand[Number, Result], b: Operand[Number, Result] | Number, *more: Operand[Number, Result] | Number
) -> Result: ...
@wants_arguments
def logical_or(a: Any, b: Any, *more: Any) -> Any:
    """Whether one of the conditions holds; numbers count as ``!= 0``. The same as ``a | b`` on conditions."""
    return _join(TABLE["logical_or"], a, b, *more)


@overload
def logical_not(x: Operand[Number, Result]) -> Result: ...
@overload
def logical_not(x: ArrayT) -> ArrayT: ...
@overload
def logical_not(x: Number) -> Expr: ...
@wants_arguments
def logical_not(x: Any) -> Any:
    """Whether ``x`` does not hold; a number counts as ``!= 0``. The same as ``~x`` on conditions."""
    return apply(TABLE["logical_not"].op, _predicate(x))


@overload
def logical_xor(a: ArrayT, b: ArrayT | Number) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def logical_xor(a: ScalarLike, b: ScalarLike) -> Expr: ...
@overload
def logical_xor(a: Operand[Number, Result], b: Operand[Number, Result] | Number) -> Result: ...
@wants_arguments
def logical_xor(a: Any, b: Any) -> Any:
    """Whether just one of the two holds; numbers count as ``!= 0``."""
    return apply(NOT_EQUAL, _predicate(a), _predicate(b))


def _join(row: Function, first: Any, *more: Any) -> Any:
    result = _predicate(first)
    for operand in more:
        result = apply(row.op, result, _predicate(operand))
    return result


def _predicate(value: Any) -> Any:
    is_condition = isinstance(value, bool) or getattr(value, "dtype", None) == "bool"
    return value if is_condition else apply(NOT_EQUAL, value, 0)

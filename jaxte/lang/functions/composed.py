"""Functions that are made of other functions."""

from __future__ import annotations

from typing import Any, TypeAlias, overload

from jaxte.lang.checks import wants_arguments
from jaxte.lang.expr import Expr, ScalarLike
from jaxte.lang.functions.choices import select
from jaxte.lang.functions.elementwise import expm1, maximum, minimum
from jaxte.lang.functions.numbers import ArrayT, Number, Result
from jaxte.lang.operators import Operand

__all__ = ["clip", "leaky_relu", "elu", "heaviside"]


Parameter: TypeAlias = Operand[Number, Result] | Number


@overload
def clip(  # type: ignore[overload-overlap]
    x: Operand[Number, Result], lo: Parameter[Result], hi: Parameter[Result]
) -> Result: ...
@overload
def clip(x: ArrayT, lo: ArrayT | Number, hi: ArrayT | Number) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def clip(x: ScalarLike, lo: ScalarLike, hi: ScalarLike) -> Expr: ...
@wants_arguments
def clip(x: Any, lo: Any, hi: Any) -> Any:
    """``minimum(maximum(x, lo), hi)``. Derivative: 1 between the bounds, 1/2 at a bound, 0 beyond."""
    return minimum(maximum(x, lo), hi)


@overload
def leaky_relu(  # type: ignore[overload-overlap]
    x: Operand[Number, Result], negative_slope: Parameter[Result] = 0.01
) -> Result: ...
@overload
def leaky_relu(x: ArrayT, negative_slope: ArrayT | Number = 0.01) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def leaky_relu(x: ScalarLike, negative_slope: ScalarLike = 0.01) -> Expr: ...
@wants_arguments
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """``x`` for ``x >= 0``, else ``negative_slope * x``. Derivative: 1 for ``x >= 0``, else the slope."""
    return select(x >= 0, x, negative_slope * x)


@overload
def elu(  # type: ignore[overload-overlap]
    x: Operand[Number, Result], alpha: Parameter[Result] = 1.0
) -> Result: ...
@overload
def elu(x: ArrayT, alpha: ArrayT | Number = 1.0) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def elu(x: ScalarLike, alpha: ScalarLike = 1.0) -> Expr: ...
@wants_arguments
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` for ``x > 0``, else ``alpha * expm1(x)``. Derivative: 1 for ``x > 0``, else ``alpha * exp(x)``."""
    return select(x > 0, x, alpha * expm1(x))


@overload
def heaviside(  # type: ignore[overload-overlap]
    x: Operand[Number, Result], h: Parameter[Result]
) -> Result: ...
@overload
def heaviside(x: ArrayT, h: ArrayT | Number) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def heaviside(x: ScalarLike, h: ScalarLike) -> Expr: ...
@wants_arguments
def heaviside(x: Any, h: Any) -> Any:
    """0 for ``x < 0``, 1 for ``x > 0``, ``h`` at 0. Derivatives: zero to x, 1 to h at 0."""
    return select(x < 0, 0.0, select(x > 0, 1.0, select(x == 0, h, x)))

"""Functions that are made of other functions."""

from __future__ import annotations

from typing import Any, overload

from jaxte.lang.checks import wants_arguments
from jaxte.lang.expr import Expr, ScalarLike
from jaxte.lang.functions.choices import select
from jaxte.lang.functions.elementwise import expm1, maximum, minimum
from jaxte.lang.functions.numbers import Result
from jaxte.lang.operators import Operand

__all__ = ["clip", "leaky_relu", "elu", "heaviside"]


@overload
def clip(x: Operand[Any, Result], lo: Any, hi: Any) -> Result: ...
@overload
def clip(x: ScalarLike, lo: ScalarLike, hi: ScalarLike) -> Expr: ...
@wants_arguments
def clip(x: Any, lo: Any, hi: Any) -> Any:
    """``minimum(maximum(x, lo), hi)``. Derivative: 1 between the bounds, 1/2 at a bound, 0 beyond."""
    return minimum(maximum(x, lo), hi)


@wants_arguments
def leaky_relu(x: Operand[Any, Result], negative_slope: Any = 0.01) -> Result:
    """``x`` for ``x >= 0``, else ``negative_slope * x``. Derivative: 1 for ``x >= 0``, else the slope."""
    return select(x >= 0, x, negative_slope * x)


@wants_arguments
def elu(x: Operand[Any, Result], alpha: Any = 1.0) -> Result:
    """``x`` for ``x > 0``, else ``alpha * expm1(x)``. Derivative: 1 for ``x > 0``, else ``alpha * exp(x)``."""
    return select(x > 0, x, alpha * expm1(x))


@wants_arguments
def heaviside(x: Operand[Any, Result], h: Any) -> Result:
    """0 for ``x < 0``, 1 for ``x > 0``, ``h`` at 0. Derivatives: zero to x, 1 to h at 0."""
    return select(x < 0, 0.0, select(x > 0, 1.0, select(x == 0, h, x)))

"""Derivatives and NumPy forms of scalar operations that take more than a line in ``jaxte.lang.scalars.table``."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxte.lang.dtypes import is_complex, is_inexact, is_integer
from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import ONE, Const, Expr, call, cast
from jaxte.lang.scalars.rows import OPS, Partial, Vjp


class _Named:
    """The operations by name, for use in derivatives: ``f.exp(x)``."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = OPS[name]
        return lambda *args: call(op, *args)


f = _Named()


def one(y: Any, *args: Any) -> Expr:
    return ONE


def minus_one(y: Any, *args: Any) -> Expr:
    return Const(-1)


def choice(first: Callable[[Any, Any], Any]) -> tuple[tuple[Partial, Partial], Vjp]:
    """Partials and vjp of the operand that comes ``first``; at a tie each gets half, as in JAX."""

    def share(g: Any, a: Any, b: Any) -> Expr:
        half = 0.5 if isinstance(g, Const) and g.value == 1 else 0.5 * g
        return f.select(first(a, b), g, f.select(a == b, half, 0))

    partials = (lambda y, a, b: share(ONE, a, b), lambda y, a, b: share(ONE, b, a))
    return partials, lambda g, y, a, b: (share(g, a, b), share(g, b, a))


def mod_divisor(y: Any, a: Any, b: Any) -> Expr:
    """``-floor(a / b)``: the quotient without its fraction, and one less where the signs differ, also if it is rounded to zero."""
    below = ((a < 0) != (b < 0)) & (y != 0)
    return f.select(below, 1, 0) - f.trunc(a / b)


def power_base(y: Any, a: Any, b: Any) -> Expr | None:
    if isinstance(b, Const):
        n: Any = b.value
        if n == 0:
            return None
        return ONE if n == 1 else n * a if n == 2 else n * a ** (n - 1)
    if is_integer(b.dtype):
        return f.select(b == 0, 0, b * a ** (b - 1))
    return b * a ** (b - 1)


def power_exponent(y: Any, a: Any, b: Any) -> Expr | None:
    """``y * log(a)``; JAX takes the logarithm of a base 0 to be 0."""
    if isinstance(b, Const) or not is_inexact(b.dtype):
        return None
    base: Any = a.value if isinstance(a, Const) else None
    if isinstance(base, (int, float)) and base > 0:
        return y * math.log(base)
    return y * f.log(f.select(a == 0, 1, a))


GELU = math.sqrt(2 / math.pi)


def gelu_partial(y: Any, x: Any) -> Expr:
    t = f.tanh(GELU * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (GELU * (1 + 3 * 0.044715 * x**2))


def silu_partial(y: Any, x: Any) -> Expr:
    s = f.sigmoid(x)
    return s * (1 + x * (1 - s))


def of_real(partial: Partial) -> Partial:
    """``partial`` of a function that has none at complex operands."""

    def checked(y: Any, x: Any) -> Expr | None:
        if is_complex(x.dtype):
            raise DifferentiationError(
                "real, imag, conj and abs of a complex value, and its casts to real, have no complex derivative; "
                "differentiate with a head, or write the expression in real and imaginary parts"
            )
        return partial(y, x)

    return checked


def abs_vjp(g: Any, y: Any, x: Any) -> tuple[Expr]:
    if is_complex(x.dtype):
        return (g * (f.conj(x) / f.select(y == 0, 1, y)),)
    return (f.select(x >= 0, g, -g),)


def imag_vjp(g: Any, y: Any, x: Any) -> tuple[Expr | None]:
    return (cast(g, x.dtype) * -1j if is_complex(x.dtype) else None,)


def cast_vjp(g: Any, y: Any, x: Any) -> tuple[Expr | None]:
    return (cast(g, x.dtype) if is_inexact(y.dtype) and is_inexact(x.dtype) else None,)


def cast_partial(y: Any, x: Any) -> Expr | None:
    if not (is_inexact(y.dtype) and is_inexact(x.dtype)):
        return None
    return ONE if is_complex(y.dtype) else of_real(one)(y, x)


def numpy_power(a: Any, b: Any) -> Any:
    if not np.issubdtype(a.dtype, np.integer):
        return np.power(a, b)
    power = np.power(a, np.abs(b))
    return np.where((b < 0) & (np.abs(power) != 1), 0, power)


def numpy_sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else np.exp(-np.logaddexp(0, -x))


def numpy_digamma(x: Any) -> Any:
    psi = importlib.import_module("scipy.special").psi
    return np.where(x == 0, np.nan, psi(x))  # SciPy has -inf there


def numpy_polygamma(n: Any, x: Any) -> Any:
    return importlib.import_module("scipy.special").polygamma(n, x)


def numpy_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(GELU * (x + 0.044715 * x**3)))

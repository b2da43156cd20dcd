"""The functions of the table of scalar functions, each documented by its row, and functions that are made of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, overload

import numpy.typing as npt

from jaxte.lang.checks import typed, wants_arguments
from jaxte.lang.dtypes import is_complex, is_integer
from jaxte.lang.errors import DtypeError
from jaxte.lang.expr import Expr, ScalarLike, apply, as_expr
from jaxte.lang.functions.choices import select
from jaxte.lang.functions.numbers import ArrayT, Number, Operands, Result
from jaxte.lang.operators import Operand
from jaxte.lang.scalars.table import TABLE

# fmt: off
__all__ = [
    "relu6", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf",
    "isfinite", "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "mod", "remainder",
    "power", "pow", "negative", "maximum", "minimum", "abs", "sign", "floor", "ceil", "trunc", "round",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "invert", "left_shift", "right_shift", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "sqrt", "rsqrt", "cbrt", "square",
    "reciprocal", "hypot", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan",
    "arctan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh", "erf",
    "erfc", "erfinv", "lgamma", "gammaln", "digamma", "polygamma", "sigmoid", "log_sigmoid", "softplus",
    "relu", "gelu", "silu", "swish", "real", "imag", "conj", "conjugate", "stop_gradient", "clip",
    "leaky_relu", "elu", "heaviside",
]

_REAL = {
    "floor_divide", "mod", "floor", "ceil", "trunc", "logaddexp", "cbrt", "hypot", "atan2", "relu",
    "erf", "erfc", "erfinv", "lgamma", "digamma", "polygamma", "log_sigmoid", "softplus",
}
# fmt: on


def _operand(name: str, x: Any) -> Any:
    if name in _REAL and (isinstance(x, complex) or is_complex(getattr(x, "dtype", ""))):
        raise DtypeError(
            f"te.{name} takes real values; take te.real, te.imag or te.abs of the complex operand first"
        )
    return x


class Unary(Protocol):
    """A function of a scalar, or of the elements of a Tensor."""

    __name__: str

    @overload
    def __call__(self, x: Operands[Result], /) -> Result: ...
    @overload
    def __call__(self, x: ArrayT, /) -> ArrayT: ...
    @overload
    def __call__(self, x: Number, /) -> Expr: ...
    def __call__(self, x: Any, /) -> Any: ...


class Binary(Protocol):
    """A function of two scalars, or of the elements of Tensors."""

    @overload
    def __call__(self, a: ArrayT, b: ArrayT | Number, /) -> ArrayT: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, a: Number, b: ArrayT, /) -> ArrayT: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, a: ScalarLike, b: ScalarLike, /) -> Expr: ...
    @overload
    def __call__(self, a: Operands[Result], b: ScalarLike, /) -> Result: ...
    @overload
    def __call__(self, a: npt.ArrayLike | ScalarLike, b: Operands[Result], /) -> Result: ...
    @overload
    def __call__(self, a: Operands[Result], b: npt.ArrayLike, /) -> Result: ...
    def __call__(self, a: Any, b: Any, /) -> Any: ...


def _unary(name: str) -> Unary:
    return _front(name)


def _binary(name: str) -> Binary:
    return _front(name)


def _front(name: str) -> Any:
    """The function that applies the operation ``name``, documented by its row."""
    row = TABLE[name]

    def unary(x: Any, /) -> Any:
        return apply(row.op, _operand(name, x))

    def binary(a: Any, b: Any, /) -> Any:
        return apply(row.op, _operand(name, a), _operand(name, b))

    front: Callable[..., Any] = unary if row.op.arity == 1 else binary
    front.__name__ = front.__qualname__ = name
    operands = ("x",) if row.op.arity == 1 else ("a", "b")
    example = f"Z = te.compute((8,), lambda i: te.{name}({'X[i]' if row.op.arity == 1 else 'X[i], Y[i]'}))"
    written = f"In code ``{row.jnp.format(*operands)}``, in LaTeX ``{row.latex.format(*operands)}``."
    kind: Any = Unary if row.op.arity == 1 else Binary
    front = wants_arguments(typed(front, kind.__call__))
    front.__doc__ = f"{row.doc}\n\n{written}\n\nExample:\n    >>> {example}\n"
    return front


add = _binary("add")
subtract = _binary("subtract")
multiply = _binary("multiply")
divide = true_divide = _binary("divide")
floor_divide = _binary("floor_divide")
mod = remainder = _binary("mod")
power = pow = _binary("power")
negative = _unary("negative")

maximum = _binary("maximum")
minimum = _binary("minimum")
abs = _unary("abs")
sign = _unary("sign")
stop_gradient = _unary("stop_gradient")
floor = _unary("floor")
ceil = _unary("ceil")
trunc = _unary("trunc")
round = _unary("round")

equal = _binary("equal")
not_equal = _binary("not_equal")
less = _binary("less")
less_equal = _binary("less_equal")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
isnan = _unary("isnan")
isinf = _unary("isinf")
isfinite = _unary("isfinite")

bitwise_and = _binary("bitwise_and")
bitwise_or = _binary("bitwise_or")
bitwise_xor = _binary("bitwise_xor")
bitwise_not = invert = _unary("bitwise_not")
left_shift = _binary("left_shift")
right_shift = _binary("right_shift")

exp = _unary("exp")
exp2 = _unary("exp2")
expm1 = _unary("expm1")
log = _unary("log")
log2 = _unary("log2")
log10 = _unary("log10")
log1p = _unary("log1p")
logaddexp = _binary("logaddexp")

sqrt = _unary("sqrt")
rsqrt = _unary("rsqrt")
cbrt = _unary("cbrt")
square = _unary("square")
reciprocal = _unary("reciprocal")
hypot = _binary("hypot")

sin = _unary("sin")
cos = _unary("cos")
tan = _unary("tan")
asin = arcsin = _unary("asin")
acos = arccos = _unary("acos")
atan = arctan = _unary("atan")
atan2 = arctan2 = _binary("atan2")
sinh = _unary("sinh")
cosh = _unary("cosh")
tanh = _unary("tanh")
asinh = arcsinh = _unary("asinh")
acosh = arccosh = _unary("acosh")
atanh = arctanh = _unary("atanh")

erf = _unary("erf")
erfc = _unary("erfc")
erfinv = _unary("erfinv")
lgamma = gammaln = _unary("lgamma")
digamma = _unary("digamma")
sigmoid = _unary("sigmoid")
log_sigmoid = _unary("log_sigmoid")
softplus = _unary("softplus")
relu = _unary("relu")
relu6 = _unary("relu6")
gelu = _unary("gelu")
silu = swish = _unary("silu")

real = _unary("real")
imag = _unary("imag")
conj = conjugate = _unary("conj")


@overload
def polygamma(  # type: ignore[overload-overlap]
    n: Operand[Number, Result] | Number, x: Operand[Number, Result], /
) -> Result: ...
@overload
def polygamma(n: Number, x: ArrayT, /) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def polygamma(n: ScalarLike, x: ScalarLike, /) -> Expr: ...
@wants_arguments
def polygamma(n: Any, x: Any, /) -> Any:
    """The n-th derivative of digamma at x, for an integer n. Derivative: ``polygamma(n + 1, x)``; none to n.

    Example:
        >>> Z = te.compute((8,), lambda i: te.polygamma(2, X[i]))
    """
    order: Any = n if isinstance(n, Operand) else as_expr(n)
    if not is_integer(order.dtype):
        raise DtypeError(f"te.polygamma({n!r}, ...): the order is a {order.dtype}; give an integer")
    return apply(TABLE["polygamma"].op, order, _operand("polygamma", x))


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

"""The functions of the table of scalar functions, each documented by its row, and functions that are made of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, overload

import numpy.typing as npt

from jaxte.lang.checks import typed, wants_arguments
from jaxte.lang.dtypes import NARROW, is_complex
from jaxte.lang.errors import DtypeError
from jaxte.lang.expr import Expr, ScalarLike, apply
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
    "arctan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh",
    "sigmoid", "expit", "log_sigmoid", "softplus", "relu", "gelu", "silu", "swish", "real", "imag", "conj",
    "conjugate", "stop_gradient", "clip", "leaky_relu", "elu", "heaviside",
]

_REAL = {
    "floor_divide", "mod", "floor", "ceil", "trunc", "logaddexp", "cbrt", "hypot", "atan2", "relu",
    "erf", "erfc", "erfinv", "lgamma", "digamma", "polygamma", "log_sigmoid", "softplus", "i0", "i0e", "i1", "i1e",
    "ndtri", "log_ndtr", "expi", "exp1", "gammainc", "gammaincc", "igamma_grad_a", "betainc", "nan_to_num",
}
_IN_SINGLE = {"ndtri", "log_ndtr", "expi", "exp1"}  # which JAX has no half precision of
# fmt: on


def real_operand(name: str, x: Any) -> Any:
    """``x``, unless the function ``name`` does not take its dtype."""
    dtype = getattr(x, "dtype", "")
    if name in _REAL and (isinstance(x, complex) or is_complex(dtype)):
        raise DtypeError(
            f"te.{name} takes real values; take te.real, te.imag or te.abs of the complex operand first"
        )
    if name in _IN_SINGLE and dtype in NARROW:
        raise DtypeError(f"te.{name} takes no {dtype}, as in JAX; write te.{name}(te.cast(x, 'float32'))")
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


def of_one(name: str) -> Unary:
    """The function of one operand whose row has this name."""
    return _front(name)


def of_two(name: str) -> Binary:
    """The function of two operands whose row has this name."""
    return _front(name)


def _front(name: str) -> Any:
    """The function that applies the operation ``name``, documented by its row."""
    row = TABLE[name]

    def unary(x: Any, /) -> Any:
        return apply(row.op, real_operand(name, x))

    def binary(a: Any, b: Any, /) -> Any:
        return apply(row.op, real_operand(name, a), real_operand(name, b))

    front: Callable[..., Any] = unary if row.op.arity == 1 else binary
    front.__name__ = front.__qualname__ = name
    operands = ("x",) if row.op.arity == 1 else ("a", "b")
    example = f"Z = te.compute((8,), lambda i: te.{name}({'X[i]' if row.op.arity == 1 else 'X[i], Y[i]'}))"
    written = f"In code ``{row.jnp.format(*operands)}``, in LaTeX ``{row.latex.format(*operands)}``."
    kind: Any = Unary if row.op.arity == 1 else Binary
    front = wants_arguments(typed(front, kind.__call__))
    front.__doc__ = f"{row.doc}\n\n{written}\n\nExample:\n    >>> {example}\n"
    return front


add = of_two("add")
subtract = of_two("subtract")
multiply = of_two("multiply")
divide = true_divide = of_two("divide")
floor_divide = of_two("floor_divide")
mod = remainder = of_two("mod")
power = pow = of_two("power")
negative = of_one("negative")

maximum = of_two("maximum")
minimum = of_two("minimum")
abs = of_one("abs")
sign = of_one("sign")
stop_gradient = of_one("stop_gradient")
floor = of_one("floor")
ceil = of_one("ceil")
trunc = of_one("trunc")
round = of_one("round")

equal = of_two("equal")
not_equal = of_two("not_equal")
less = of_two("less")
less_equal = of_two("less_equal")
greater = of_two("greater")
greater_equal = of_two("greater_equal")
isnan = of_one("isnan")
isinf = of_one("isinf")
isfinite = of_one("isfinite")

bitwise_and = of_two("bitwise_and")
bitwise_or = of_two("bitwise_or")
bitwise_xor = of_two("bitwise_xor")
bitwise_not = invert = of_one("bitwise_not")
left_shift = of_two("left_shift")
right_shift = of_two("right_shift")

exp = of_one("exp")
exp2 = of_one("exp2")
expm1 = of_one("expm1")
log = of_one("log")
log2 = of_one("log2")
log10 = of_one("log10")
log1p = of_one("log1p")
logaddexp = of_two("logaddexp")

sqrt = of_one("sqrt")
rsqrt = of_one("rsqrt")
cbrt = of_one("cbrt")
square = of_one("square")
reciprocal = of_one("reciprocal")
hypot = of_two("hypot")

sin = of_one("sin")
cos = of_one("cos")
tan = of_one("tan")
asin = arcsin = of_one("asin")
acos = arccos = of_one("acos")
atan = arctan = of_one("atan")
atan2 = arctan2 = of_two("atan2")
sinh = of_one("sinh")
cosh = of_one("cosh")
tanh = of_one("tanh")
asinh = arcsinh = of_one("asinh")
acosh = arccosh = of_one("acosh")
atanh = arctanh = of_one("atanh")

sigmoid = expit = of_one("sigmoid")
log_sigmoid = of_one("log_sigmoid")
softplus = of_one("softplus")
relu = of_one("relu")
relu6 = of_one("relu6")
gelu = of_one("gelu")
silu = swish = of_one("silu")

real = of_one("real")
imag = of_one("imag")
conj = conjugate = of_one("conj")


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

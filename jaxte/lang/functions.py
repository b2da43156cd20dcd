"""The scalar functions of the language.

Each function takes scalar expressions, index expressions, Python numbers and whole Tensors (elementwise, with
broadcasting). Its name is the one in ``jax.numpy``, ``jax.nn`` or ``jax.scipy.special``, whose values, dtypes and
derivatives it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, overload

import numpy as np

from jaxte.lang import expr
from jaxte.lang.checks import described, wants_arguments
from jaxte.lang.dtypes import dtype_name, is_complex, is_inexact, is_integer
from jaxte.lang.errors import ArgumentError, DefinitionError, DtypeError
from jaxte.lang.expr import Axis, Const, Expr, ScalarLike, apply, as_expr
from jaxte.lang.numbers import number_of, plain_number
from jaxte.lang.operators import NOT_EQUAL, Operand
from jaxte.lang.scalars.rows import Form, Function
from jaxte.lang.scalars.table import TABLE

# fmt: off
__all__ = [
    "TABLE", "Form", "Function",
    "const", "cast", "select", "where", "if_then_else", "choose", "clip", "relu6", "leaky_relu", "elu", "heaviside",
    "logical_and", "logical_or", "logical_not", "logical_xor",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite",
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "mod", "remainder", "power", "pow",
    "negative", "maximum", "minimum", "abs", "sign", "floor", "ceil", "trunc", "round",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "invert", "left_shift", "right_shift",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp",
    "sqrt", "rsqrt", "cbrt", "square", "reciprocal", "hypot",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh",
    "erf", "erfc", "erfinv", "lgamma", "gammaln", "digamma", "polygamma",
    "sigmoid", "log_sigmoid", "softplus", "relu", "gelu", "silu", "swish", "real", "imag", "conj", "conjugate", "stop_gradient",
]
# fmt: on


# --- the functions of the table

# fmt: off
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


Result = TypeVar("Result")


class Unary(Protocol):
    """A function of a scalar, or of the elements of a Tensor."""

    @overload
    def __call__(self, x: Operand[Any, Result], /) -> Result: ...
    @overload
    def __call__(self, x: bool | int | float | complex | np.generic, /) -> Expr: ...


class Binary(Protocol):
    """A function of two scalars, or of the elements of Tensors."""

    @overload
    def __call__(self, a: ScalarLike, b: ScalarLike, /) -> Expr: ...
    @overload
    def __call__(self, a: Operand[Any, Result], b: ScalarLike, /) -> Result: ...
    @overload
    def __call__(self, a: Any, b: Operand[Any, Result], /) -> Result: ...
    @overload
    def __call__(self, a: Operand[Any, Result], b: Any, /) -> Result: ...


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
    front = wants_arguments(front)
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


# --- choices and logic


@overload
def select(cond: ScalarLike, a: ScalarLike, b: ScalarLike) -> Expr: ...
@overload
def select(cond: Any, a: Any, b: Any) -> Any: ...
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
def choose(index: Any, choices: Sequence[Any]) -> Expr:
    """``choices[index]``, one of several scalars by an index expression, as ``numpy.choose`` with ``mode="clip"``.

    Args:
        index: an integer expression; below 0 it is the first of the choices, beyond their number the last.
        choices: numbers or scalar expressions, at least one.

    Raises:
        DefinitionError: no choices, or an axis that is longer than they are many.

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
def logical_and(a: ScalarLike, b: ScalarLike, *more: ScalarLike) -> Expr: ...
@overload
def logical_and(a: Any, b: Any, *more: Any) -> Any: ...
@wants_arguments
def logical_and(a: Any, b: Any, *more: Any) -> Any:
    """Whether all of the conditions hold; numbers count as ``!= 0``. The same as ``a & b`` on conditions."""
    return _join(TABLE["logical_and"], a, b, *more)


@overload
def logical_or(a: ScalarLike, b: ScalarLike, *more: ScalarLike) -> Expr: ...
@overload
def logical_or(a: Any, b: Any, *more: Any) -> Any: ...
@wants_arguments
def logical_or(a: Any, b: Any, *more: Any) -> Any:
    """Whether one of the conditions holds; numbers count as ``!= 0``. The same as ``a | b`` on conditions."""
    return _join(TABLE["logical_or"], a, b, *more)


@wants_arguments
def logical_not(x: Operand[Any, Result]) -> Result:
    """Whether ``x`` does not hold; a number counts as ``!= 0``. The same as ``~x`` on conditions."""
    return apply(TABLE["logical_not"].op, _predicate(x))


@overload
def logical_xor(a: ScalarLike, b: ScalarLike) -> Expr: ...
@overload
def logical_xor(a: Any, b: Any) -> Any: ...
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


# --- numbers and dtypes


@wants_arguments
def const(value: Any, dtype: object = None) -> Const:
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
def cast(x: Operand[Any, Result], dtype: object) -> Result: ...
@overload
def cast(x: bool | int | float | complex | np.generic, dtype: object) -> Expr: ...
@wants_arguments
def cast(x: Any, dtype: object) -> Any:
    """``x`` as ``dtype``. The derivative is 1 between floating dtypes and zero from or to integers.

    Y = te.compute((8,), lambda i: X[i] * te.cast(i, "float32"))
    """
    return expr.cast(x if isinstance(x, Operand) else const(x, dtype), dtype_name(dtype))


# --- composed


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

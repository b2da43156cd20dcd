"""Functions that are made of those of the table: each is written out where it stands, and has the derivatives of what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import inf, log, nan, pi, sqrt
from typing import Any, overload

from jaxte.lang.checks import typed, wants_arguments
from jaxte.lang.dtypes import is_inexact, largest
from jaxte.lang.expr import Expr, ScalarLike, as_expr
from jaxte.lang.functions import elementwise as f
from jaxte.lang.functions import special
from jaxte.lang.functions.choices import logical_not, select
from jaxte.lang.functions.elementwise import Binary, Parameter, Unary
from jaxte.lang.functions.numbers import ArrayT, Number, Result
from jaxte.lang.operators import Operand

# fmt: off
__all__ = [
    "fabs", "absolute", "deg2rad", "radians", "rad2deg", "degrees", "sinc", "selu", "celu", "mish", "hard_tanh",
    "hard_sigmoid", "hard_silu", "hard_swish", "soft_sign", "squareplus", "sparse_plus", "sparse_sigmoid", "logit",
    "ndtr", "gamma", "entr", "fmax", "fmin", "fmod", "logaddexp2", "xlogy", "xlog1py", "rel_entr", "kl_div", "betaln",
    "beta", "copysign", "nan_to_num", "rint", "isposinf", "isneginf",
    "log1mexp", "angle",
]
# fmt: on

# scale and slope that keep numbers of mean 0 and variance 1 so, as jax.nn.selu has them
_SELU, _ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
_NEAR = 0.1  # an angle up to which five terms of the series of a sine are exact in double precision


def _unary(fn: Callable[[Any], Any]) -> Unary:
    return _of_scalars(fn, Unary.__call__)  # type: ignore[no-any-return]


def _binary(fn: Callable[[Any, Any], Any]) -> Binary:
    return _of_scalars(fn, Binary.__call__)  # type: ignore[no-any-return]


def _of_scalars(fn: Callable[..., Any], like: Callable[..., Any]) -> Any:
    """``fn``, which makes expressions of numbers, too."""

    @wraps(fn)
    def front(*operands: Any) -> Any:
        return fn(*(as_expr(x) if isinstance(x, (int, float)) else x for x in operands))

    return wants_arguments(typed(front, like))


fabs = absolute = f.abs
rint = f.round


@_unary
def deg2rad(x: Any, /) -> Any:
    """``x * pi / 180``: degrees as radians."""
    return x * (pi / 180)


@_unary
def rad2deg(x: Any, /) -> Any:
    """``x * 180 / pi``: radians as degrees."""
    return x * (180 / pi)


radians, degrees = deg2rad, rad2deg


@_unary
def sinc(x: Any, /) -> Any:
    """``sin(pi * x) / (pi * x)``, 1 at 0, where all derivatives are those of the series."""
    angle = pi * x
    square = angle * angle
    series = 1.0 - square / 6 * (
        1.0 - square / 20 * (1.0 - square / 42 * (1.0 - square / 72 * (1.0 - square / 110)))
    )
    return select(f.abs(angle) < _NEAR, series, f.sin(angle) / angle)


@_unary
def selu(x: Any, /) -> Any:
    """``scale * elu(x, alpha)`` with the numbers that keep mean and variance (Klambauer and others, 2017)."""
    return _SELU * f.elu(x, _ALPHA)


@overload
def celu(x: Operand[Number, Result], alpha: Parameter[Result] = 1.0) -> Result: ...  # type: ignore[overload-overlap]
@overload
def celu(x: ArrayT, alpha: ArrayT | Number = 1.0) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def celu(x: ScalarLike, alpha: ScalarLike = 1.0) -> Expr: ...
@wants_arguments
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` for ``x > 0``, else ``alpha * expm1(x / alpha)``. Derivative: 1 for ``x > 0``, else ``exp(x / alpha)``."""
    return select(x > 0, x, alpha * f.expm1(x / alpha))


@_unary
def mish(x: Any, /) -> Any:
    """``x * tanh(softplus(x))`` (Misra, 2019)."""
    return x * f.tanh(f.softplus(x))


@_unary
def hard_tanh(x: Any, /) -> Any:
    """``x`` between -1 and 1, else the nearer of these. Derivative: 1 from -1 to 1, 0 beyond."""
    return select(x > 1, 1.0, select(x < -1, -1.0, x))


@_unary
def hard_sigmoid(x: Any, /) -> Any:
    """``relu6(x + 3) / 6``."""
    return f.relu6(x + 3.0) / 6


@_unary
def hard_silu(x: Any, /) -> Any:
    """``x * hard_sigmoid(x)``."""
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@_unary
def soft_sign(x: Any, /) -> Any:
    """``x / (1 + abs(x))``."""
    return x / (f.abs(x) + 1.0)


@overload
def squareplus(x: Operand[Number, Result], b: Parameter[Result] = 4.0) -> Result: ...  # type: ignore[overload-overlap]
@overload
def squareplus(x: ArrayT, b: ArrayT | Number = 4.0) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def squareplus(x: ScalarLike, b: ScalarLike = 4.0) -> Expr: ...
@wants_arguments
def squareplus(x: Any, b: Any = 4.0) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``: a smooth relu, which is ``sqrt(b) / 2`` at 0."""
    return 0.5 * (x + f.sqrt(f.square(x) + b))


@_unary
def sparse_plus(x: Any, /) -> Any:
    """0 up to -1, ``(x + 1)**2 / 4`` up to 1, ``x`` beyond. Derivative: :func:`sparse_sigmoid`."""
    return select(x <= -1, 0.0, select(x >= 1, x, f.square(x + 1.0) / 4))


@_unary
def sparse_sigmoid(x: Any, /) -> Any:
    """``(x + 1) / 2`` between 0 and 1, else the nearer of these. Derivative: 1/4 at both ends."""
    return 0.5 * f.clip(x + 1.0, 0.0, 2.0)


@_unary
def logit(x: Any, /) -> Any:
    """``log(x / (1 - x))``, of which sigmoid is the inverse. Derivative: ``1 / (x * (1 - x))``."""
    return f.log(x / (1.0 - x))


@_unary
def log1mexp(x: Any, /) -> Any:
    """``log(1 - exp(-x))`` of positive numbers, exact near 0 (Mächler, 2012). Derivative: ``1 / expm1(x)``."""
    return select(x < log(2), f.log(-f.expm1(-x)), f.log1p(-f.exp(-x)))


@_unary
def angle(z: Any, /) -> Any:
    """``atan2(imag(z), real(z))``; 0 or pi for real numbers."""
    return f.atan2(f.imag(z), f.real(z))


@_unary
def ndtr(x: Any, /) -> Any:
    """The distribution function of the standard normal distribution, ``erfc(-x / sqrt(2)) / 2``."""
    return 0.5 * special.erfc(x * -sqrt(0.5))


@_unary
def gamma(x: Any, /) -> Any:
    """The gamma function; NaN at negative integers. Derivative: ``gamma(x) * digamma(x)``."""
    whole = f.floor(x)
    sign = select((x >= 0) | (f.mod(whole, 2.0) == 0), 1.0, -1.0)
    return select((x < 0) & (whole == x), nan, sign * f.exp(special.lgamma(x)))


@_unary
def entr(x: Any, /) -> Any:
    """``-x * log(x)``, 0 at 0 and minus infinity below. Derivative: ``-log(x) - 1``."""
    return select(x < 0, -inf, select(x == 0, 0.0, -x * f.log(x)))


@_binary
def fmax(a: Any, b: Any, /) -> Any:
    """The larger of a and b, the other one where one is NaN. Derivatives: 1 to the one that it is, to b where both are equal."""
    return select((a > b) | f.isnan(b), a, b)


@_binary
def fmin(a: Any, b: Any, /) -> Any:
    """The smaller of a and b, the other one where one is NaN. Derivatives: 1 to the one that it is, to b where both are equal."""
    return select((a < b) | f.isnan(b), a, b)


@_binary
def fmod(a: Any, b: Any, /) -> Any:
    """``a - trunc(a / b) * b``, with the sign of a. Derivatives: 1, ``-trunc(a / b)``."""
    size = f.abs(b)
    return select(a < 0, -f.mod(-a, size), f.mod(a, size))


@_binary
def logaddexp2(a: Any, b: Any, /) -> Any:
    """``log2(2**a + 2**b)``, without overflow."""
    return f.logaddexp(a * log(2), b * log(2)) * (1 / log(2))


@_binary
def xlogy(a: Any, b: Any, /) -> Any:
    """``a * log(b)``, 0 where a is, whatever b. Derivatives: ``log(b)``, ``a / b``; none where a is 0 and ``log(b)`` no number."""
    return select((a == 0) & logical_not((b > 0) & (b < inf)), 0.0, a * f.log(b))


@_binary
def xlog1py(a: Any, b: Any, /) -> Any:
    """``a * log1p(b)``, 0 where a is, whatever b. Derivatives: ``log1p(b)``, ``a / (1 + b)``; none where a is 0 and ``log1p(b)`` no number."""
    return select((a == 0) & logical_not((b > -1) & (b < inf)), 0.0, a * f.log1p(b))


@_binary
def rel_entr(a: Any, b: Any, /) -> Any:
    """``a * log(a / b)`` for positive numbers, 0 for ``a == 0`` and ``b >= 0``, infinity elsewhere."""
    return select((a > 0) & (b > 0), a * f.log(a / b), select((a == 0) & (b >= 0), 0.0, inf))


@_binary
def kl_div(a: Any, b: Any, /) -> Any:
    """``rel_entr(a, b) - a + b``."""
    return rel_entr(a, b) - a + b


@_binary
def betaln(a: Any, b: Any, /) -> Any:
    """``log(beta(a, b))`` of positive numbers, ``lgamma(a) + lgamma(b) - lgamma(a + b)``."""
    return special.lgamma(a) + special.lgamma(b) - special.lgamma(a + b)


@_binary
def beta(a: Any, b: Any, /) -> Any:
    """``gamma(a) * gamma(b) / gamma(a + b)`` of positive numbers."""
    return f.exp(betaln(a, b))


@_binary
def copysign(a: Any, b: Any, /) -> Any:
    """``abs(a)`` with the sign of b, of a zero too. Derivatives: the sign by which a is multiplied; none to b."""
    size = f.abs(a)
    return select((b < 0) | ((b == 0) & (1.0 / b < 0)), -size, size)


@_unary
def isposinf(x: Any, /) -> Any:
    """Whether x is plus infinity."""
    return f.equal(x, inf)


@_unary
def isneginf(x: Any, /) -> Any:
    """Whether x is minus infinity."""
    return f.equal(x, -inf)


@overload
def nan_to_num(  # type: ignore[overload-overlap]
    x: Operand[Number, Result], nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Result: ...
@overload
def nan_to_num(  # type: ignore[overload-overlap]
    x: ArrayT, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> ArrayT: ...
@overload
def nan_to_num(
    x: ScalarLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Expr: ...
@wants_arguments
def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """x with numbers in place of NaN and infinities: by default 0, and the largest and smallest of its dtype. Derivative: 1 where x is finite, else 0."""
    value = f.real_operand("nan_to_num", as_expr(x) if isinstance(x, (int, float)) else x)
    if not is_inexact(value.dtype):
        return value
    most = largest(value.dtype)
    bounded = select(f.equal(value, inf), most if posinf is None else posinf, value)
    bounded = select(f.equal(value, -inf), -most if neginf is None else neginf, bounded)
    return select(f.isnan(value), nan, bounded)

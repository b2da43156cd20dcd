"""Special functions by their names in ``jax.scipy.special``: each is documented by its row in the table of scalar functions."""

from __future__ import annotations

from typing import Any, overload

from jaxte.lang.checks import wants_arguments
from jaxte.lang.dtypes import is_integer
from jaxte.lang.errors import DtypeError
from jaxte.lang.expr import Expr, ScalarLike, apply, as_expr
from jaxte.lang.functions.elementwise import Parameter, of_one, of_two, real_operand
from jaxte.lang.functions.numbers import ArrayT, Number, Result
from jaxte.lang.operators import Operand
from jaxte.lang.scalars.table import TABLE

# fmt: off
__all__ = [
    "erf", "erfc", "erfinv", "lgamma", "gammaln", "digamma", "polygamma", "i0", "i0e", "i1", "i1e", "ndtri", "log_ndtr",
    "expi", "exp1", "gammainc", "gammaincc", "igamma_grad_a", "betainc",
]
# fmt: on

erf = of_one("erf")
erfc = of_one("erfc")
erfinv = of_one("erfinv")
lgamma = gammaln = of_one("lgamma")
digamma = of_one("digamma")
i0 = of_one("i0")
i0e = of_one("i0e")
i1 = of_one("i1")
i1e = of_one("i1e")
ndtri = of_one("ndtri")
log_ndtr = of_one("log_ndtr")
expi = of_one("expi")
exp1 = of_one("exp1")
gammainc = of_two("gammainc")
gammaincc = of_two("gammaincc")
igamma_grad_a = of_two("igamma_grad_a")


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
    return apply(TABLE["polygamma"].op, order, real_operand("polygamma", x))


@overload
def betainc(  # type: ignore[overload-overlap]
    a: Parameter[Result], b: Parameter[Result], x: Operand[Number, Result]
) -> Result: ...
@overload
def betainc(a: ArrayT | Number, b: ArrayT | Number, x: ArrayT) -> ArrayT: ...  # type: ignore[overload-overlap]
@overload
def betainc(a: ScalarLike, b: ScalarLike, x: ScalarLike) -> Expr: ...
@wants_arguments
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularised incomplete beta function of a and b up to x. Derivative in x: ``x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)``.

    There is none in a and b, as in JAX: where they depend on inputs, give ``te.stop_gradient(a)``.

    Example:
        >>> Z = te.compute((8,), lambda i: te.betainc(2.0, 3.0, te.sigmoid(X[i])))
    """
    return apply(TABLE["betainc"].op, *(real_operand("betainc", v) for v in (a, b, x)))

"""The rows of Bessel functions, incomplete integrals and quantiles, by their names in ``jax.scipy.special``, with JAX's derivatives."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from jaxte.lang.errors import DifferentiationError
from jaxte.lang.expr import Expr
from jaxte.lang.scalars.rows import function
from jaxte.lang.scalars.rules import f

_ROOT_2PI = math.sqrt(2 * math.pi)
_SPECIAL = "jax.scipy.special."


def _quotient(y: Any, x: Any) -> Expr:
    """``y / x`` of a function that is ``x / 2`` near 0."""
    return f.select(x == 0, 0.5, y / f.select(x == 0, 1, x))


def _density(a: Any, x: Any) -> Expr:
    """``exp(-x) * x**(a - 1) / gamma(a)``, of the gamma distribution."""
    return f.exp((a - 1) * f.log(x) - x - f.lgamma(a))


def _beta_density(y: Any, a: Any, b: Any, x: Any) -> Expr:
    """``x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)``."""
    return f.exp((a - 1) * f.log(x) + (b - 1) * f.log1p(-x) + f.lgamma(a + b) - f.lgamma(a) - f.lgamma(b))


def _without(what: str, operands: str) -> Any:
    """The derivative in an operand in which neither JAX nor a short formula has one."""

    def partial(y: Any, *args: Any) -> Expr:
        raise DifferentiationError(
            f"{what} has no derivative in {operands}, as in JAX; write te.stop_gradient(..) around what is not to be differentiated"
        )

    return partial


_SECOND = _without("the derivative of te.gammainc and te.gammaincc in a", "a and x")
_NOT_OF_BETA = _without("te.betainc", "a and b")


def _numpy_igamma_grad_a(a: Any, x: Any) -> Any:
    """The series of ``gammainc``, each term ``exp(-x) * x**(a + n) / gamma(a + n + 1)`` by its derivative in ``a``."""
    special = importlib.import_module("scipy.special")
    a, x = np.broadcast_arrays(np.asarray(a), np.asarray(x))
    own = np.where(np.isfinite(x) & (x > 0) & (a > 0), x, 1.0).astype("float64")
    first = np.where(a > 0, a, 1.0).astype("float64")
    total = np.zeros(own.shape)
    for n in range(
        60 + int(4 * own.max(initial=1.0))
    ):  # beyond, terms are below those of the largest x by more than rounding
        term = np.exp((first + n) * np.log(own) - own - special.gammaln(first + n + 1))
        total += term * (np.log(own) - special.psi(first + n + 1))
    outside = np.where(x == 0, 0.0, np.where(np.isposinf(x) & (a > 0), 0.0, np.nan))
    return np.where(np.isfinite(x) & (x > 0) & (a > 0), total, outside).astype(np.result_type(a, x))


# fmt: off
SPECIAL = (
    function("i0", "Modified Bessel function of order 0. Derivative: ``i1(x)``.",
             lambda y, x: f.i1(x), jnp=_SPECIAL + "i0", latex=r"I_0"),
    function("i1", "Modified Bessel function of order 1. Derivative: ``i0(x) - i1(x) / x``, 1/2 at 0.",
             lambda y, x: f.i0(x) - _quotient(y, x), jnp=_SPECIAL + "i1", latex=r"I_1"),
    function("i0e", "``exp(-abs(x)) * i0(x)``. Derivative: ``i1e(x) - sign(x) * i0e(x)``.",
             lambda y, x: f.i1e(x) - f.sign(x) * y, jnp=_SPECIAL + "i0e"),
    function("i1e", "``exp(-abs(x)) * i1(x)``. Derivative: ``i0e(x) - i1e(x) * (sign(x) + 1 / x)``, 1/2 at 0.",
             lambda y, x: f.i0e(x) - f.sign(x) * y - _quotient(y, x), jnp=_SPECIAL + "i1e"),
    function("ndtri", "The quantile of the standard normal distribution, of which ndtr is the inverse. Derivative: "
             "``sqrt(2 * pi) * exp(ndtri(x)**2 / 2)``.", lambda y, x: _ROOT_2PI * f.exp(0.5 * y * y), jnp=_SPECIAL + "ndtri"),
    function("log_ndtr", "``log(ndtr(x))``, also where that is 0 to what is rounded. Derivative: "
             "``exp(-x**2 / 2 - log_ndtr(x)) / sqrt(2 * pi)``.",
             lambda y, x: f.exp(-0.5 * x * x - y) / _ROOT_2PI, jnp=_SPECIAL + "log_ndtr"),
    function("expi", "The exponential integral ``Ei``. Derivative: ``exp(x) / x``.",
             lambda y, x: f.exp(x) / x, jnp=_SPECIAL + "expi", latex=r"\operatorname{{Ei}}"),
    function("exp1", "The exponential integral ``E1``. Derivative: ``-exp(-x) / x``.",
             lambda y, x: -f.exp(-x) / x, jnp=_SPECIAL + "exp1", latex=r"E_1"),
    function("gammainc", "The regularised lower incomplete gamma function of a up to x. Derivatives: ``igamma_grad_a(a, x)``, "
             "``exp(-x) * x**(a - 1) / gamma(a)``.",
             lambda y, a, x: f.igamma_grad_a(a, x), lambda y, a, x: _density(a, x), jnp=_SPECIAL + "gammainc", latex="P"),
    function("gammaincc", "``1 - gammainc(a, x)``. Derivatives: those of gammainc, negative.",
             lambda y, a, x: -f.igamma_grad_a(a, x), lambda y, a, x: -_density(a, x), jnp=_SPECIAL + "gammaincc", latex="Q"),
    function("igamma_grad_a", "The derivative of ``gammainc(a, x)`` in a. It has none of its own.",
             _SECOND, _SECOND,
             jnp="lax.igamma_grad_a", latex=r"\partial_a P", numpy=_numpy_igamma_grad_a),
    function("betainc", "The regularised incomplete beta function of a and b up to x. Derivative: "
             "``x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)``; none in a and b.",
             _NOT_OF_BETA, _NOT_OF_BETA, _beta_density, jnp=_SPECIAL + "betainc", latex="I"),
)
# fmt: on

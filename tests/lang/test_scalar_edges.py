"""Scalar functions at the edges: values and derivatives at infinities, NaN, huge, tiny and neighbouring numbers, beside JAX.

Where JAX and jaxte differ, mpmath says which is right; ``NOT_AS_IN_JAX`` lists the functions, as docs/dtypes.md does.
Subnormal numbers are left out: XLA on the CPU takes them as zeros in some operations and not in others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64", "optimised")
special = jax.scipy.special
TOLERANCE = {"float32": 3e-6, "float64": 1e-13}

UNARY: dict[str, Callable[..., Any]] = {
    "exp": jnp.exp, "exp2": jnp.exp2, "expm1": jnp.expm1, "log": jnp.log, "log2": jnp.log2, "log10": jnp.log10,
    "log1p": jnp.log1p, "sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt, "cbrt": jnp.cbrt, "square": jnp.square,
    "reciprocal": jnp.reciprocal, "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "asin": jnp.arcsin,
    "acos": jnp.arccos, "atan": jnp.arctan, "sinh": jnp.sinh, "cosh": jnp.cosh, "tanh": jnp.tanh,
    "asinh": jnp.arcsinh, "acosh": jnp.arccosh, "atanh": jnp.arctanh, "erf": special.erf, "erfc": special.erfc,
    "erfinv": special.erfinv, "lgamma": special.gammaln, "digamma": special.digamma, "sigmoid": jax.nn.sigmoid,
    "log_sigmoid": jax.nn.log_sigmoid, "softplus": jax.nn.softplus, "relu": jax.nn.relu, "relu6": jax.nn.relu6,
    "gelu": jax.nn.gelu, "silu": jax.nn.silu, "abs": jnp.abs, "sign": jnp.sign, "floor": jnp.floor,
    "ceil": jnp.ceil, "trunc": jnp.trunc, "round": jnp.round, "negative": jnp.negative,
    "leaky_relu": jax.nn.leaky_relu, "elu": jax.nn.elu, "real": jnp.real, "conj": jnp.conj,
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "divide": jnp.divide,
    "floor_divide": jnp.floor_divide, "mod": jnp.mod, "power": jnp.power, "maximum": jnp.maximum,
    "minimum": jnp.minimum, "logaddexp": jnp.logaddexp, "hypot": jnp.hypot, "atan2": jnp.arctan2,
    "heaviside": jnp.heaviside,
}  # fmt: skip
WRITTEN: dict[str, Callable[[Any], Any]] = {
    "x ** 2": lambda x: x**2,
    "x ** 3": lambda x: x**3,
    "x ** -1": lambda x: x**-1,
    "x ** 0": lambda x: x**0,
    "x ** 1.0": lambda x: x**1.0,
    "2.0 ** x": lambda x: 2.0**x,
    "0.0 ** x": lambda x: 0.0**x,
    "1 / x": lambda x: 1 / x,
}
# What mpmath says that the derivatives to a and b are.
NOT_AS_IN_JAX: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "divide": (lambda a, b: 1 / b, lambda a, b: -a / b / b),
    "logaddexp": (lambda a, b: _sigmoid(a, b), lambda a, b: _sigmoid(b, a)),
    "hypot": (lambda a, b: a / mpmath.hypot(a, b), lambda a, b: b / mpmath.hypot(a, b)),
}


def _sigmoid(a: Any, b: Any) -> Any:
    """``1 / (1 + exp(b - a))``; one or both may be infinite."""
    if mpmath.isinf(a) or mpmath.isinf(b):
        return mpmath.nan if a == b else mpmath.mpf(a > b)
    return 1 / (1 + mpmath.exp(b - a))


def edges(dtype: str) -> np.ndarray:
    limits = np.finfo(dtype)
    huge = 1e30 if dtype == "float32" else 1e300
    positive = [
        limits.tiny,
        limits.eps,
        0.3,
        0.5,
        1 - limits.eps / 2,
        1,
        1 + limits.eps,
        2,
        3,
        5.5,
        6,
        10,
        30,
        100,
    ]
    positive += [1e5, huge, limits.max, np.inf]
    return np.array([0.0, -0.0, *positive, *(-p for p in map(float, positive)), np.nan], dtype)


def agree(found: Any, expected: Any, tolerance: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= tolerance * np.maximum(np.abs(found), np.abs(expected))
    return (np.isnan(found) & np.isnan(expected)) | (found == expected) | near


def both(
    fn: Callable[..., Any], reference: Callable[..., Any], *arrays: np.ndarray
) -> list[tuple[np.ndarray, ...]]:
    """Value and derivatives, ours beside JAX's."""
    own = te.function(lambda *x: te.compute(arrays[0].shape, lambda i: fn(*(a[i] for a in x))))
    ones = jnp.ones_like(arrays[0])
    numbers = tuple(range(len(arrays)))

    def everything(f: Callable[..., Any]) -> Any:
        return jax.jit(lambda *x: (f(*x), *jax.vjp(f, *x)[1](ones)))(*arrays)

    def elementwise(*x: Any) -> Any:
        return (reference(*x), *jax.vmap(jax.grad(reference, argnums=numbers))(*x))

    return [
        (np.asarray(a), np.asarray(b))
        for a, b in zip(everything(own), jax.jit(elementwise)(*arrays), strict=True)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*UNARY, *WRITTEN])
def test_of_one_operand(name: str, dtype: str) -> None:
    x = edges(dtype)
    fn = WRITTEN.get(name) or getattr(te, name)
    for what, (found, expected) in zip(
        ("value", "derivative"), both(fn, UNARY.get(name, fn), x), strict=True
    ):
        right = agree(found, expected, TOLERANCE[dtype])
        assert right.all(), (what, *zip(x[~right], found[~right], expected[~right], strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_of_two_operands(name: str, dtype: str) -> None:
    a, b = (m.ravel() for m in np.meshgrid(edges(dtype), edges(dtype), indexing="ij"))
    rows = both(getattr(te, name), BINARY[name], a, b)
    for position, (found, expected) in enumerate(rows):
        right = agree(found, expected, TOLERANCE[dtype])
        if position and name in NOT_AS_IN_JAX:
            right |= np.isinf(rows[0][0]) & np.isfinite(a) & np.isfinite(b)  # a value that overflows
            right |= by_mpmath(NOT_AS_IN_JAX[name][position - 1], a, b, found, dtype, ~right)
        assert right.all(), (
            position,
            *zip(a[~right], b[~right], found[~right], expected[~right], strict=True),
        )


def by_mpmath(
    derivative: Callable[[Any, Any], Any],
    a: np.ndarray,
    b: np.ndarray,
    found: np.ndarray,
    dtype: str,
    at: np.ndarray,
) -> np.ndarray:
    """Whether ``found`` is what ``derivative`` gives with 60 digits, ``at`` the points in question."""
    result = np.zeros_like(at)
    with mpmath.workdps(60):
        for n in np.nonzero(at)[0]:
            exact = derivative(mpmath.mpf(float(a[n])), mpmath.mpf(float(b[n])))
            limits = np.finfo(dtype)
            value = (
                np.float64(float(exact)) if abs(exact) < limits.max or not mpmath.isfinite(exact) else np.inf
            )
            # a result below the least normal number is zero on some processors
            result[n] = agree(found[n], value, TOLERANCE[dtype]) or abs(found[n] - value) < limits.tiny
    return result


@pytest.mark.parametrize("name", NOT_AS_IN_JAX)
def test_what_differs_from_jax_still_does(name: str) -> None:
    """Or the row and its line in docs/dtypes.md go."""
    a, b = (m.ravel() for m in np.meshgrid(edges("float32"), edges("float32"), indexing="ij"))
    rows = both(getattr(te, name), BINARY[name], a, b)
    assert not all(agree(*row, TOLERANCE["float32"]).all() for row in rows)


def test_the_order_of_polygamma_is_an_integer() -> None:
    x = te.placeholder((3,), name="x")
    with pytest.raises(te.DtypeError, match=r"polygamma\(1\.5, \.\.\.\)"):
        te.compute((3,), lambda i: te.polygamma(1.5, x[i]))


def test_a_choice_between_equal_numbers_is_the_number() -> None:
    """What is zero on both sides of a choice flows no further: beside an infinite slope it would be NaN."""
    X = te.placeholder((4,), name="X")
    k = te.axis("k")
    assert te.select(X[k] > 0, 0.0, 0.0) is te.select(X[k] < 0, 0.0, 0.0)
    assert te.select(X[k] > 0, X[k], X[k]) is not X[k]
    assert te.select(X[k] > 0, 0.0, -0.0) is not te.select(X[k] < 0, 0.0, -0.0)

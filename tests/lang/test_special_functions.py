"""Bessel functions, incomplete integrals and quantiles: values and derivatives beside JAX's and mpmath's, in bodies, recurrences, formulas and te.grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax.scipy import special

import jaxte as te
from jaxte.lang.scalars.special import SPECIAL

pytestmark = pytest.mark.usefixtures("x64")

SIGNED = np.array([-20.0, -7.3, -2.0, -0.6, -1e-3, 0.0, 1e-9, 0.3, 1.0, 3.0, 9.25, 40.0])
POSITIVE, UNIT = np.array([1e-3, 0.1, 0.6, 1.0, 2.5, 7.0, 30.0]), np.array([1e-6, 0.02, 0.3, 0.5, 0.71, 0.98])
# where each is asked, and what mpmath says of it
ONE: dict[str, tuple[np.ndarray, Callable[[Any], Any]]] = {
    "i0": (SIGNED, lambda x: mpmath.besseli(0, x)),
    "i1": (SIGNED, lambda x: mpmath.besseli(1, x)),
    "i0e": (SIGNED, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x)),
    "i1e": (SIGNED, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x)),
    "ndtri": (UNIT, lambda x: mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1)),
    "log_ndtr": (SIGNED[1:], lambda x: mpmath.log(mpmath.ncdf(x))),
    "expi": (np.concatenate([POSITIVE, [-0.3, -2.0, -9.0]]), mpmath.ei),
    "exp1": (POSITIVE, mpmath.e1),
}
KINKS = ("i0e", "i1e")  # of which |x| is a part: mpmath's differences at 0 are those of both sides
TWO = {
    "gammainc": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mpmath.gammainc(a, x, regularized=True),
}


def _at(body: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """The values, first and second derivatives in the last operand, and the values by the interpreter."""
    f = te.function(lambda *x: te.compute(x[0].shape, lambda i: body(*(own[i] for own in x)), "y"))
    first = jax.grad(lambda *x: jnp.sum(f(*x)), len(arrays) - 1)
    second = jax.grad(lambda *x: jnp.sum(first(*x)), len(arrays) - 1)
    inputs = [te.placeholder(a.shape, "float64", name=f"x{n}") for n, a in enumerate(arrays)]
    meant = te.interpret(
        te.compute(arrays[0].shape, lambda i: body(*(own[i] for own in inputs))),
        dict(zip(inputs, arrays, strict=True)),
    )
    return [np.asarray(v) for v in (f(*arrays), first(*arrays), second(*arrays), meant)]


def _by_mpmath(f: Callable[..., Any], arrays: tuple[np.ndarray, ...], order: int, place: int) -> np.ndarray:
    with mpmath.workdps(40):
        slopes = []
        for at in zip(*arrays, strict=True):
            exact = [mpmath.mpf(float(v)) for v in at]
            along = lambda v, exact=exact: f(*exact[:place], v, *exact[place + 1 :])  # noqa: E731
            slopes.append(float(mpmath.diff(along, exact[place], order) if order else f(*exact)))
    return np.array(slopes)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name: str) -> None:
    x, meant = ONE[name]
    value, first, second, interpreted = _at(getattr(te, name), x)
    smooth = (x != 0) | (name not in KINKS)
    np.testing.assert_allclose(value, _by_mpmath(meant, (x,), 0, 0), rtol=1e-10)
    np.testing.assert_allclose(interpreted, value, rtol=1e-10)
    np.testing.assert_allclose(first[smooth], _by_mpmath(meant, (x,), 1, 0)[smooth], rtol=1e-9, atol=1e-12)
    # beside 0, x - i1(x) / x and its like lose what they have in common
    far = smooth & ((np.abs(x) > 1e-2) | (x == 0) | (name[0] != "i"))
    np.testing.assert_allclose(second[far], _by_mpmath(meant, (x,), 2, 0)[far], rtol=1e-7, atol=1e-10)


def test_slopes_of_even_functions_at_zero_are_zero() -> None:
    """Where JAX has 1 for i0, by way of ``abs``."""
    assert _at(te.i0, np.zeros(1))[1] == 0
    assert _at(te.i0e, np.zeros(1))[1] == jax.grad(special.i0e)(0.0)
    assert _at(te.i1e, np.zeros(1))[1] == jax.grad(special.i1e)(0.0)


@pytest.mark.parametrize("name", TWO)
def test_incomplete_gamma_functions(name: str) -> None:
    a, x = (v.ravel() for v in np.meshgrid([0.3, 1.0, 2.5, 12.0], [0.05, 0.7, 2.0, 9.0, 30.0]))
    value, first, second, interpreted = _at(getattr(te, name), a, x)
    np.testing.assert_allclose(value, _by_mpmath(TWO[name], (a, x), 0, 0), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(interpreted, value, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(first, _by_mpmath(TWO[name], (a, x), 1, 1), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(second, _by_mpmath(TWO[name], (a, x), 2, 1), rtol=1e-8, atol=1e-12)
    own = te.function(lambda a, x: te.compute(a.shape, lambda i: getattr(te, name)(a[i], x[i]), "y"))
    in_a = jax.grad(lambda a: jnp.sum(own(a, x)))(a)
    np.testing.assert_allclose(in_a, _by_mpmath(TWO[name], (a, x), 1, 0), rtol=1e-9, atol=1e-11)
    A, X, H = (te.placeholder(a.shape, "float64", name=n) for n in "AXH")
    slope = te.differentiate(te.compute(a.shape, lambda i: getattr(te, name)(A[i], X[i])), [A], head=H)[0]
    np.testing.assert_allclose(
        te.interpret(slope, {A: a, X: x, H: np.ones(a.shape)}), in_a, rtol=1e-9, atol=1e-11
    )


def test_incomplete_beta_function() -> None:
    x = UNIT
    for a, b in ((2.0, 3.0), (0.5, 0.5), (7.0, 1.0)):
        meant = lambda x, a=a, b=b: mpmath.betainc(a, b, 0, x, regularized=True)  # noqa: E731
        value, first, second, interpreted = _at(lambda x, a=a, b=b: te.betainc(a, b, x), x)
        np.testing.assert_allclose(value, _by_mpmath(meant, (x,), 0, 0), rtol=1e-10)
        np.testing.assert_allclose(interpreted, value, rtol=1e-10)
        np.testing.assert_allclose(first, _by_mpmath(meant, (x,), 1, 0), rtol=1e-9)
        np.testing.assert_allclose(second, _by_mpmath(meant, (x,), 2, 0), rtol=1e-7, atol=1e-9)


def test_derivatives_that_are_not_there() -> None:
    a, x = np.array([0.5, 2.0]), np.array([0.2, 0.7])
    held = te.function(
        lambda a, x: te.compute(a.shape, lambda i: te.betainc(te.stop_gradient(a[i]), 2.0, x[i]), "y")
    )
    expected = jax.grad(lambda x: jnp.sum(special.betainc(a, 2.0, x)))(x)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(held(a, x)))(x), expected, rtol=1e-12)
    with pytest.raises(
        te.DifferentiationError, match=r"te.betainc has no derivative in a and b.*stop_gradient"
    ):
        jax.grad(
            lambda a: jnp.sum(
                te.function(lambda a: te.compute(a.shape, lambda i: te.betainc(a[i], 2.0, 0.3), "y"))(a)
            )
        )(a)
    own = te.function(lambda a: te.compute(a.shape, lambda i: te.gammainc(a[i], 1.5), "y"))
    with pytest.raises(te.DifferentiationError, match=r"the derivative of te\.gammainc"):
        jax.grad(lambda a: jnp.sum(jax.grad(lambda a: jnp.sum(own(a)))(a)))(a)


def test_recurrences_with_operands_that_have_no_derivative() -> None:
    def ours(a, b):
        def step(h, t, i):
            held = te.betainc(te.stop_gradient(b[t, i]), 2.0, te.sigmoid(h[t - 1, i]))
            return held + te.gammainc(a[t, i], te.exp(h[t - 1, i]))

        return te.recurrence(a.shape, step, init=0.5, dtype="float64", name="h")

    def theirs(a, b):
        def step(h, at):
            h = special.betainc(at[1], 2.0, jax.nn.sigmoid(h)) + special.gammainc(at[0], jnp.exp(h))
            return h, h

        return jax.lax.scan(step, jnp.full(a.shape[1], 0.5), (a, b))[1]

    own = np.random.default_rng(3)
    a, b = own.uniform(0.5, 2.0, (9, 4)), own.uniform(0.5, 2.0, (9, 4))
    found, expected = (
        jax.value_and_grad(lambda a, f=f: jnp.sum(f(a, b) ** 2))(a) for f in (te.function(ours), theirs)
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)


def test_other_numbers() -> None:
    x, inf = np.array([-np.inf, -2.5, -0.0, 0.0, 1.5, np.inf, np.nan]), np.inf
    X = te.placeholder(x.shape, "float64", name="X")
    for own, expected in (
        (te.nan_to_num(X), np.nan_to_num(x)),
        (te.nan_to_num(X, 1.0, 5.0, -6.0), np.nan_to_num(x, nan=1.0, posinf=5.0, neginf=-6.0)),
        (te.copysign(3.0, X), [-3, -3, -3, 3, 3, 3, 3]),
        (te.rint(X), np.rint(x)),
        (te.isposinf(X), x == inf),
        (te.isneginf(X), x == -inf),
    ):
        np.testing.assert_array_equal(te.interpret(own, {X: x}), expected)
        np.testing.assert_array_equal(te.evaluate(own, {X: x}), expected)
    slope = jax.grad(lambda x: jnp.sum(te.function(lambda x: te.nan_to_num(x))(x)))(x)
    np.testing.assert_array_equal(slope, np.isfinite(x))
    for dtype in ("float16", "bfloat16", "float32"):
        own = te.placeholder((1,), dtype, name="x")
        assert te.evaluate(te.nan_to_num(own), {own: jnp.array([jnp.inf], dtype)}) == jnp.finfo(dtype).max
    np.testing.assert_allclose(
        te.evaluate(te.beta(te.abs(X), 2.0), {X: x})[1], special.beta(2.5, 2.0), rtol=1e-12
    )


def test_formulas_and_raised_functions() -> None:
    x = np.array([0.3, 0.7, 1.9])
    found = te.define("y[i] = log(i0(x[i])) + gammainc(2.0, x[i]) + expit(x[i])")(x)
    np.testing.assert_allclose(
        found, np.log(special.i0(x)) + special.gammainc(2.0, x) + jax.nn.sigmoid(x), rtol=1e-12
    )

    def loss(x):
        return jnp.sum(
            special.i0e(x) * special.gammaincc(x, 2.0) + special.i1e(x) + special.betainc(2.0, 3.0, x / 4)
        )

    found = te.adjoint(loss, everything=True)
    np.testing.assert_allclose(jax.grad(found)(x), jax.grad(loss)(x), rtol=1e-10)


@pytest.mark.parametrize("name", [row.op.name for row in SPECIAL])
def test_dtypes(name: str) -> None:
    own = getattr(te, name)
    arity = next(row.op.arity for row in SPECIAL if row.op.name == name)
    for dtype in ("float32", "float64"):
        x = te.placeholder((3,), dtype, name="x")
        y = te.compute((3,), lambda i, x=x: own(*(x[i],) * arity))
        assert y.dtype == dtype
        assert te.evaluate(y, {x: np.full(3, 0.5, dtype)}).dtype == dtype
    with pytest.raises(te.DtypeError, match=f"te.{name} takes real values"):
        own(*(te.placeholder((3,), "complex64", name="z"),) * arity)
    if name in ("ndtri", "log_ndtr", "expi", "exp1"):
        with pytest.raises(te.DtypeError, match=f"te.{name} takes no bfloat16"):
            own(te.placeholder((3,), "bfloat16", name="z"))

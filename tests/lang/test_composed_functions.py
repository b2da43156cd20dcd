"""Functions that are made of others: values and first and second derivatives beside JAX's, as expressions, of whole Tensors and of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import special

import jaxte as te

pytestmark = pytest.mark.usefixtures("x64")

ALL = np.array([-7.3, -2.0, -1.0, -0.6, -1e-3, 0.0, 1e-9, 0.02, 0.3, 1.0, 1.7, 3.0, 9.25])
SMOOTH = ALL[ALL != 0]
UNIT, POSITIVE = np.linspace(0.02, 0.98, 9), np.array([0.1, 0.6, 1.0, 2.5, 7.0])
# those of jax.nn differ in name alone
ONE: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "fabs": (jnp.fabs, ALL),
    "absolute": (jnp.absolute, ALL),
    "deg2rad": (jnp.deg2rad, ALL),
    "radians": (jnp.radians, ALL),
    "rad2deg": (jnp.rad2deg, ALL),
    "degrees": (jnp.degrees, ALL),
    "sinc": (jnp.sinc, ALL[np.abs(ALL) != 1e-9]),  # beside 0 JAX's derivative is that at 0
    "selu": (jax.nn.selu, SMOOTH),
    "celu": (jax.nn.celu, SMOOTH),
    "mish": (jax.nn.mish, ALL),
    "hard_tanh": (jax.nn.hard_tanh, ALL),
    "hard_sigmoid": (jax.nn.hard_sigmoid, ALL),
    "hard_silu": (jax.nn.hard_silu, ALL),
    "hard_swish": (jax.nn.hard_swish, ALL),
    "soft_sign": (jax.nn.soft_sign, ALL),
    "squareplus": (jax.nn.squareplus, ALL),
    "sparse_plus": (jax.nn.sparse_plus, ALL[np.abs(ALL) != 1]),
    "sparse_sigmoid": (jax.nn.sparse_sigmoid, ALL),
    "logit": (special.logit, UNIT),
    "log1mexp": (jax.nn.log1mexp, POSITIVE),
    "ndtr": (special.ndtr, ALL),
    "gamma": (special.gamma, np.array([-2.5, -1.25, -0.5, 0.4, 1.0, 3.3, 6.0])),
    "entr": (special.entr, UNIT),
}
A, B = np.array([-3.5, -1.0, 0.0, 0.5, 2.0, 7.5, 2.25]), np.array([2.0, -0.75, 1.5, 0.25, 1.0, -2.0, 1.125])
TWO: dict[str, tuple[Callable[..., Any], np.ndarray, np.ndarray]] = {
    "fmax": (jnp.fmax, A, B),
    "fmin": (jnp.fmin, A, B),
    "fmod": (jnp.fmod, A, B),
    "logaddexp2": (jnp.logaddexp2, A, B),
    "xlogy": (special.xlogy, A, np.abs(B)),
    "xlog1py": (special.xlog1py, A, np.abs(B)),
    "rel_entr": (special.rel_entr, np.abs(A) + 0.1, np.abs(B)),
    "kl_div": (special.kl_div, np.abs(A) + 0.1, np.abs(B)),
    "betaln": (special.betaln, np.abs(A) + 0.1, np.abs(B)),
}


def _beside(ours: Callable[..., Any], theirs: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> None:
    """Values, adjoints and adjoints of their sines."""

    def twice(f: Callable[..., Any]) -> Callable[..., Any]:
        first = jax.grad(lambda *a: jnp.sum(jnp.sin(f(*a))), tuple(range(len(arrays))))
        return jax.grad(lambda *a: sum(jnp.sum(jnp.cos(g)) for g in first(*a)), tuple(range(len(arrays))))

    np.testing.assert_allclose(ours(*arrays), theirs(*arrays), rtol=1e-11, atol=1e-12)
    for make in (lambda f: jax.grad(lambda *a: jnp.sum(jnp.sin(f(*a))), tuple(range(len(arrays)))), twice):
        for own, expected in zip(make(ours)(*arrays), make(theirs)(*arrays), strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name: str) -> None:
    theirs, at = ONE[name]
    own = getattr(te, name)
    _beside(te.function(lambda x: te.compute(x.shape, lambda i: own(x[i]), "y")), theirs, (at,))
    x = te.placeholder(at.shape, "float64", name="x")
    np.testing.assert_allclose(te.interpret(own(x), {x: at}), theirs(at), rtol=1e-11, atol=1e-12)
    assert own(0.5).dtype == (te.const(0.5) * 1.0).dtype


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name: str) -> None:
    theirs, a, b = TWO[name]
    own = getattr(te, name)
    _beside(te.function(lambda x, y: te.compute(x.shape, lambda i: own(x[i], y[i]), "z")), theirs, (a, b))
    x = te.placeholder(a.shape, "float64", name="x")
    np.testing.assert_allclose(te.interpret(own(x, 0.75), {x: a}), theirs(a, 0.75), rtol=1e-11, atol=1e-12)


def test_where_there_is_no_number() -> None:
    x, y = te.placeholder((4,), "float64", name="x"), te.placeholder((4,), "float64", name="y")
    feeds = {x: np.array([np.nan, 1.0, 0.0, -1.0]), y: np.array([2.0, np.nan, 0.0, np.nan])}
    np.testing.assert_array_equal(te.interpret(te.fmax(x, y), feeds), np.fmax(feeds[x], feeds[y]))
    np.testing.assert_array_equal(te.interpret(te.fmin(x, y), feeds), np.fmin(feeds[x], feeds[y]))
    own = {x: np.array([0.0, 0.0, 0.0, 2.0]), y: np.array([0.0, -1.0, np.inf, 1.0])}
    np.testing.assert_array_equal(te.interpret(te.xlogy(x, y), own), np.zeros(4))
    at = {x: np.array([-3.0, -0.5, 0.0, 2.0])}
    np.testing.assert_array_equal(np.isnan(te.interpret(te.gamma(x), at)), [True, False, False, False])
    np.testing.assert_array_equal(te.interpret(te.entr(x), at)[:3] == -np.inf, [True, True, False])


def test_angles_of_complex_numbers() -> None:
    z = np.array([1 + 1j, -2.0 + 0.5j, -1 - 3j, 2 + 0j, -1j])
    angles = te.function(lambda z: te.compute(z.shape, lambda i: te.angle(z[i]), "a"))
    np.testing.assert_allclose(angles(z), jnp.angle(z), rtol=1e-12)
    found, expected = (jax.grad(lambda z, f=f: jnp.sum(jnp.sin(f(z))))(z) for f in (angles, jnp.angle))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "parameter"), [("celu", 0.3), ("squareplus", 1.5)])
def test_parameters(name: str, parameter: float) -> None:
    own = getattr(te, name)
    ours = te.function(lambda x: te.compute(x.shape, lambda i: own(x[i], parameter), "y"))
    _beside(ours, lambda x: getattr(jax.nn, name)(x, parameter), (SMOOTH,))


def test_formulas_and_functions_with_loops_have_them() -> None:
    @te.loops
    def held(x):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = np.fmax(x[i], 0.25) + np.sinc(x[i])
        return y

    at = np.array([-0.5, np.nan, 1.5])
    found = te.define("y[i] = fmax(x[i], 0.25) + sinc(x[i])")(at)
    np.testing.assert_allclose(found, held(at), rtol=1e-12)
    np.testing.assert_allclose(found, np.fmax(at, 0.25) + np.sinc(at), rtol=1e-12)

"""Equations that stay are linearized by JAX once for each kind; while a function is raised no cycles are collected."""

from __future__ import annotations

import gc

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

import jaxte as te
from jaxte.frontends.jaxpr.equations.called import as_calls

STEPS = 12


def logarithms(x):
    for _ in range(STEPS):
        x = jnp.where(x > 0, jnp.log(x) * 0.5, x * 0.9) + 0.1
    return jnp.sum(x**2)


def chosen_twice(x):
    for _ in range(STEPS):
        x = jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)) * 0.5, x * 0.9) + 0.1
    return jnp.sum(x**2)


def layers(x, w):
    for _ in range(STEPS):
        x = jax.nn.relu(x @ w) + jnp.where(x > 0, jnp.sqrt(x), 0.0)
    return jnp.sum(x)


def equations(f, *args):
    return jax.make_jaxpr(f)(*args).eqns


def test_equal_equations_are_calls_of_one_function():
    def f(x):
        for own in (jnp.cos, jnp.exp, jnp.tanh, jnp.cosh):
            x = own(jnp.sin(x) * 0.5)  # no two steps follow each other
        return x

    made = as_calls(
        [e for e in equations(f, jnp.ones(4)) if e.primitive.name in ("sin", "cos", "exp", "tanh")]
    )
    functions = {id(e.params["jaxpr"]) for e in made if e.primitive.name == "jit"}
    assert [e.primitive.name for e in made] == ["jit", "cos", "jit", "exp", "jit", "tanh", "jit"] and len(
        functions
    ) == 1


def test_what_is_not_differentiated_and_what_occurs_twice_stays():
    compared = [e for e in equations(logarithms, jnp.ones(4)) if e.primitive.name == "gt"]
    twice = equations(lambda x: jnp.sin(jnp.sin(x)), 1.0)
    assert as_calls(compared) == compared and as_calls(twice) == list(twice)


def test_numbers_of_python_stay_weak():
    def f(x):
        scale = 1.0
        for n in range(4):
            scale = scale * jnp.where(x[n] > 0, jnp.log(x[n]), 0.5)
        return scale * 2

    x = jnp.arange(4, dtype="float16") + 0.5
    got, expected = te.grad(f)(x), jax.grad(f)(x)
    assert got.dtype == expected.dtype and np.allclose(got, expected, rtol=1e-2)


def test_gradients_are_those_of_two_choices(rng):
    x = jnp.asarray(rng.normal(size=9), "float32").at[0].set(0.0)
    np.testing.assert_allclose(te.grad(logarithms)(x), jax.grad(chosen_twice)(x), rtol=1e-5)
    hessian = te.hessian(logarithms)(x)
    np.testing.assert_allclose(hessian, jax.hessian(chosen_twice)(x), rtol=1e-4, atol=1e-5)


def test_under_vmap_and_jit(rng):
    x, w = (jnp.asarray(rng.uniform(0.5, 1.0, size=s), "float32") for s in ((3, 5, 4), (4, 4)))
    got = jax.jit(jax.vmap(te.grad(layers, (0, 1)), (0, None)))(x, w)
    expected = jax.vmap(jax.grad(layers, (0, 1)), (0, None))(x, w)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4)


def test_a_function_is_linearized_once(monkeypatch):
    """Rules of JAX that are called for the twelve steps: those of each kind once, as for the function as it was written."""
    called = []
    rule = ad.primitive_jvps[jax.lax.mul_p]
    monkeypatch.setitem(ad.primitive_jvps, jax.lax.mul_p, lambda *a, **k: called.append(1) or rule(*a, **k))
    jax.make_jaxpr(te.grad(logarithms))(jnp.ones(7))
    assert len(called) <= 6


def test_cycles_are_not_collected_while_a_function_is_raised():
    seen = []

    def f(x):
        seen.append(gc.isenabled())
        return jnp.sum(jnp.roll(x, 1) * x)

    jax.jit(te.grad(f)).lower(jnp.ones(4))
    assert seen and not any(seen) and gc.isenabled()

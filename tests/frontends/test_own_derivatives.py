"""Functions that bring a rule for what flows back, ``jax.custom_vjp``: raised with it where it is one of single elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.custom_derivatives import SymbolicZero

import jaxte as te


@jax.custom_vjp
def clipped_back(x: Any) -> Any:
    """The identity, through which slopes between -1 and 1 pass."""
    return x * 1.0


clipped_back.defvjp(lambda x: (clipped_back(x), None), lambda _, g: (jnp.clip(g, -1, 1),))


@jax.custom_vjp
def rounded(x: Any) -> Any:
    """Rounds, with the slope of the identity near 0."""
    return jnp.round(x)


rounded.defvjp(lambda x: (rounded(x), x), lambda x, g: (g * (jnp.abs(x) < 1),))


@jax.custom_vjp
def weighted(x: Any, y: Any) -> Any:
    """A product whose slopes are not its own."""
    return x * jnp.sin(y)


weighted.defvjp(lambda x, y: (weighted(x, y), (x, y)), lambda r, g: (2 * g * jnp.sin(r[1]), 3 * g * r[0]))


@jax.custom_vjp
def centred(x: Any) -> Any:
    """No function of single elements; its rule is one."""
    return x - x.mean()


centred.defvjp(lambda x: (centred(x), None), lambda _, g: (g,))


@jax.custom_vjp
def scaled(x: Any, s: Any) -> Any:
    """A product with one number."""
    return x * s


scaled.defvjp(lambda x, s: (scaled(x, s), (x, s)), lambda r, g: (g * r[1], jnp.sum(g * r[0])))

FUNCTIONS = {
    "clipped": (lambda x: jnp.sum(clipped_back(3 * jnp.roll(x, 1) - x) ** 2), ""),
    "rounded": (lambda x: jnp.sum((rounded(x[1:] - x[:-1]) + x[1:] * x[:-1]) ** 2), ""),
    "two operands": (lambda x: jnp.sum(weighted(jnp.roll(x, 1, 0) + x, jnp.roll(x, -1, 1)) ** 3), ""),
    "whole arrays": (lambda x: jnp.sum(centred(jnp.roll(x, 1)) ** 3), ""),
    "one operand twice": (lambda x: jnp.sum(weighted(x, x)[1:] * x[1:]), "broadcasts its operands"),
    "a scale": (lambda x: jnp.sum(scaled(x, x[0, 0])[1:] ** 2), "broadcasts its operands"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_rule_is_honoured(name: str, rng: np.random.Generator) -> None:
    f, reason = FUNCTIONS[name]
    x = jnp.asarray(rng.normal(size=(12, 8)), jnp.float32)
    raised = te.adjoint(f, everything=True)
    found = [line.reason for line in te.explain(raised, x).kept]
    assert any(reason in r for r in found) if reason else not found
    np.testing.assert_allclose(jax.grad(raised)(x), jax.grad(f)(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("transform", [lambda g: jax.vmap(g), lambda g: jax.jacrev(lambda x: g(x[0]))])
def test_rules_under_transformations(transform: Any, rng: np.random.Generator) -> None:
    f, _ = FUNCTIONS["two operands"]
    x = jnp.asarray(rng.normal(size=(2, 5, 4)), jnp.float32)
    found = transform(jax.grad(te.adjoint(f, everything=True)))(x)
    np.testing.assert_allclose(found, transform(jax.grad(f))(x), rtol=1e-4, atol=1e-5)


def test_functions_applied_at_positions_stay() -> None:
    """JAX writes them as a scatter, whose values a rule for scatters would set."""
    f = lambda x: x.at[1:3].apply(jnp.sin)  # noqa: E731
    x = jnp.arange(5.0)
    np.testing.assert_array_equal(jax.jit(te.adjoint(f, everything=True))(x), f(x))


def test_a_rule_that_calls_a_rule_that_clips() -> None:
    """The value that a tangent reads is the value itself: what flows back to both is clipped once."""

    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return jnp.sin(x)

    clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, head: (jnp.tanh(head) * x,))

    @jax.custom_jvp
    def own(x: Any) -> Any:
        return clipped(x)

    @own.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = clipped(x)
        return out, t * jnp.cos(x) + out * t

    def second(f: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(jnp.sin(jax.grad(f)(x))))

    x = jnp.array([0.3, -0.7, 1.1])
    for loss in (lambda x: jnp.sum(own(x) * x), lambda x: jnp.sum(own(x) * own(x) * x)):
        np.testing.assert_allclose(second(te.adjoint(loss, everything=True))(x), second(loss)(x), rtol=1e-5)


def test_a_call_that_returns_what_it_is_given() -> None:
    """``jnp.where`` of arrays without elements returns an operand: who reads its result reads what was there before."""

    def f(x: Any) -> Any:
        y = jnp.roll(x, -1, 0)
        z = jnp.where(jnp.arange(x.shape[1]) % 2 == 0, y, 2.0)
        return jnp.sum(jnp.tanh(y)) + jnp.sum(jnp.tanh(z))

    assert jax.grad(te.adjoint(f, everything=True))(jnp.zeros((6, 0))).shape == (6, 0)


def test_what_a_call_returns_is_read_by_the_name_that_has_it() -> None:
    """The region that computes ``x * x`` returns it as what ``jnp.where`` makes of it, which another region reads."""

    def f(x: Any) -> Any:
        v = jnp.where(x > 0.2, x * x, 0.0)
        normed = (v - jnp.mean(v, 0, keepdims=True)) * jax.lax.rsqrt(jnp.var(v, 0, keepdims=True) + 0.1)
        return jnp.sum(jnp.tanh(v)) + jnp.sum(jnp.tanh(normed) * 3.0)

    assert jax.grad(te.adjoint(f, everything=True))(jnp.zeros((6, 0))).shape == (6, 0)


def calls_itself_of_tangents(scale: float) -> Any:
    """A linear function whose rule is the function: ``f(t)`` for the tangent ``t``."""
    own = jax.custom_jvp(lambda x: x * scale)
    own.defjvp(lambda x, t: (own(x[0]), own(t[0])))
    return own


def scaled_by_another(x: Any) -> Any:
    """A function whose rule hands what moves to a linear one with a rule of its own."""
    linear = calls_itself_of_tangents(2.0)
    own = jax.custom_jvp(jnp.sin)
    own.defjvp(lambda x, t: (jnp.sin(x[0]), linear(t[0] * jnp.cos(x[0])) * 0.5))
    return own(x)


@pytest.mark.parametrize(
    "own", [calls_itself_of_tangents(1.0), calls_itself_of_tangents(-0.3), scaled_by_another]
)
def test_a_rule_that_is_a_function_of_the_tangent(own: Any, rng: np.random.Generator) -> None:
    """``_asarray_jvp`` of optimistix: the transpose of what a function does to a tangent asked for its rule, which is the function, without end."""
    loss = lambda x: jnp.sum(jnp.sin(own(x)) * own(x * x))  # noqa: E731
    x = jnp.asarray(rng.normal(size=5), "float32")
    derived = te.adjoint(loss, everything=True)
    for transform in (jax.grad, jax.hessian):
        np.testing.assert_allclose(transform(derived)(x), transform(loss)(x), rtol=2e-5, atol=1e-5)


@jax.custom_jvp
def waved(x: Any, w: Any) -> Any:
    return jnp.sin(x) * w


def rule_of_waves(primals: Any, tangents: Any) -> Any:
    if type(tangents[1]) is not SymbolicZero:
        raise RuntimeError("weights have no derivative")
    return waved(*primals), tangents[0] * primals[1] * jnp.cos(primals[0])


waved.defjvp(rule_of_waves, symbolic_zeros=True)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize(
    "loss",
    [
        lambda x: jnp.sum(waved(x @ x, jnp.ones(x.shape))[:2] ** 2),  # is computed for two rows of 48
        lambda x: jnp.sum(jnp.roll(waved(jnp.roll(x, 1, 0), jnp.ones(x.shape)), 1, 0) ** 3 * x),
    ],
)
def test_a_rule_that_refuses_a_tangent_is_asked_for_no_other(
    loss: Any, everything: bool, rng: np.random.Generator
) -> None:
    """``nondifferentiable`` of equinox, by which diffrax says that there is no derivative by a time."""
    x = jnp.asarray(rng.normal(size=(48, 48)), "float32")
    found = jax.grad(te.adjoint(loss, everything=everything))(x)
    np.testing.assert_allclose(found, jax.grad(loss)(x), rtol=1e-4, atol=1e-2)


def test_a_derivative_that_is_refused_is_an_error_of_the_rule(rng: np.random.Generator) -> None:
    """What was not to be differentiated still is an error."""
    x = jnp.asarray(rng.normal(size=8), "float32")
    loss = te.adjoint(lambda w: jnp.sum(jnp.roll(waved(x, jnp.roll(w, 1)), 1) ** 2), everything=True)
    with pytest.raises(RuntimeError, match="weights have no derivative"):
        jax.grad(loss)(x)

"""Rules of derivatives as JAX means them: what a rule computes is what is differentiated once more, and rules may lead to rules."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te
from tests.frontends.random_rules import RandomRules, check_rules


@jax.custom_vjp
def through(x: Any) -> Any:
    """Rounds; its rule rounds by an operation, whose derivative is 0."""
    return jnp.round(x)


through.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))


@jax.custom_jvp
def norm(x: Any) -> Any:
    """A reduction whose rule calls it for its value, as JAX's documentation has it."""
    return jnp.sqrt(jnp.sum(x**2))


@norm.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    out = norm(*primals)
    return out, jnp.where(out > 0, jnp.sum(x * t) / jnp.where(out > 0, out, 1), 0)


def sine(x: Any) -> Any:
    return jnp.sin(x)


@jax.custom_jvp
def by_plain(x: Any) -> Any:
    """A function whose rule makes its value by a plain one."""
    return sine(x)


@by_plain.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return sine(*primals), tangents[0] * jnp.exp(primals[0])


@jax.custom_vjp
def rewritten(x: Any) -> Any:
    """A function whose rule makes another value."""
    return jnp.sin(x)


rewritten.defvjp(lambda x: (2 * jnp.cos(x), x), lambda x, g: (g * jnp.exp(x),))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def endless(k: int, x: Any) -> Any:
    """A function whose derivative is the next one, all of one text."""
    return jnp.tanh(x)


@endless.defjvp
def _(k: int, primals: Any, tangents: Any) -> Any:
    return endless(k, *primals), (k + 1) * tangents[0] * endless(k + 1, *primals)


FUNCTIONS = {
    "through": through,
    "norm": lambda x: norm(x) * x,
    "by plain": by_plain,
    "rewritten": rewritten,
    "sinc": jnp.sinc,
    "endless": partial(endless, 1),
    "relu": jax.nn.relu,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_are_those_of_jax_at_both_orders(name: str, rng: np.random.Generator) -> None:
    own = FUNCTIONS[name]

    def loss(x: Any) -> Any:
        return jnp.sum(jnp.roll(own(x), 1) ** 2 * x)

    with jax.enable_x64(True):
        x = jnp.asarray(rng.normal(size=7) * 2).at[0].set(0.0)
        raised = te.adjoint(loss, everything=True)
        assert te.explain(raised, x).kept_equations == 0
        for derivative in (jax.grad, lambda f: jax.jacrev(jax.grad(f))):
            np.testing.assert_allclose(derivative(raised)(x), derivative(loss)(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["through", "by plain"])
def test_batches_of_rules(name: str, rng: np.random.Generator) -> None:
    def loss(x: Any) -> Any:
        return jnp.sum(jnp.roll(FUNCTIONS[name](x), 1) ** 2 * x)

    with jax.enable_x64(True):
        batch = jnp.asarray(rng.normal(size=(2, 5)))
        raised = te.adjoint(loss, everything=True)
        found, expected = (jax.hessian(lambda x, f=f: jnp.sum(jax.vmap(f)(x))) for f in (raised, loss))
        np.testing.assert_allclose(found(batch), expected(batch), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["norm", "sinc", "endless"])
def test_the_default_takes_rules_that_call_their_function(name: str) -> None:
    def loss(x: Any) -> Any:
        return jnp.sum(jnp.cumsum(FUNCTIONS[name](x))[:64] * x[:64])

    x = jnp.linspace(-2, 2, 4096)
    np.testing.assert_allclose(te.grad(loss)(x), jax.grad(loss)(x), rtol=1e-4, atol=1e-4)


def test_a_number_that_only_a_rule_reads_is_part_of_the_plan() -> None:
    """Calls with other numbers have one text."""
    raised = te.adjoint(lambda x, k: jnp.sum(endless(k, x) * jnp.roll(x, 1)), everything=True)
    x = jnp.linspace(-1, 1, 8)
    for k in (0, 3):
        expected = jax.grad(lambda x: jnp.sum(endless(k, x) * jnp.roll(x, 1)))(x)  # noqa: B023
        np.testing.assert_allclose(jax.grad(raised)(x, k), expected, rtol=1e-5)


@pytest.mark.parametrize("seed", [7, 19, 87])
def test_random_rules(seed: int) -> None:
    with jax.enable_x64(True):
        check_rules(RandomRules(seed), everything=True)

"""States of loops in a number of bytes: values of both orders beside jax.grad, what XLA holds, what is told, bad input."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from jaxte.frontends.jaxpr.loops.budget import slots_for
from jaxte.lower.recurrences.replays import computed_again
from tests.agreement import QUICKEST

STATE = 8 * 8 * 4  # bytes, in single precision


def march(u: Any, c: Any) -> Any:
    def step(n: Any, u: Any) -> Any:
        return u + c * jnp.sin(jnp.roll(u, 1, 0) - u) + 0.1 * jnp.cos(u) * jnp.roll(u, 1, 1)

    return jnp.sum(lax.fori_loop(0, 101, step, u) ** 2)


def rows(x: Any, c: Any) -> Any:
    """Rows in and out, from the last on, and a counter."""

    def step(state: Any, row: Any) -> Any:
        h, n = state
        h = jnp.tanh(h * c + row)
        return (h, n + 1), h * n

    (h, n), out = lax.scan(step, (x[0], 0), x, reverse=True)
    return jnp.sum(jnp.sin(out)) + jnp.sum(h) * n


def _gradients(f: Any, save: int, *args: Any) -> Any:
    raised = te.adjoint(f, save=save)
    both = jax.jit(
        lambda *args: [jax.value_and_grad(g, (0, 1))(*args) for g in (f, raised)], compiler_options=QUICKEST
    )
    return both(*args)


@pytest.mark.parametrize(("f", "save"), [(march, 20 * STATE), (rows, 5 * 8 * 8), (rows, 1)])
def test_gradients(f: Any, save: int) -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        x, c = jnp.asarray(rng.normal(size=(8, 8) if f is march else (23, 8))), jnp.asarray(0.3)
        expected, found = _gradients(f, save, x, c)
        for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-11)


def test_second_order() -> None:
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))
        raised = te.adjoint(rows, save=40)
        v = jnp.cos(x)
        orders = (
            lambda f: jax.jvp(f, (x, 0.3), (v, 0.1)),
            lambda f: jax.vmap(jax.grad(f), (0, None))(jnp.stack([x, v]), 0.3),
            lambda f: jax.grad(lambda x: jax.vmap(f, (0, None))(x, 0.3).sum())(jnp.stack([x, v])),
            lambda f: jax.jacfwd(f, 1)(x, 0.3),
            lambda f: jax.jvp(jax.grad(f), (x, 0.3), (v, 0.1))[1],
            lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f)(x, 0.3) * v))(x),
        )
        every = jax.jit(
            lambda: [[order(f) for order in orders] for f in (raised, rows)], compiler_options=QUICKEST
        )
        for found, expected in zip(*map(jax.tree.leaves, every()), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_what_is_held() -> None:
    u, c = jnp.ones((8, 8)) / 3, jnp.float32(0.3)
    held = []
    for f in (march, te.adjoint(march, save=15 * STATE)):
        code = jax.jit(jax.grad(f)).lower(u, c).compile()
        held.append(code.memory_analysis().temp_size_in_bytes / STATE)
    assert held[0] > 101
    assert held[1] < 40


def test_what_is_told() -> None:
    u, c = jnp.ones((8, 8)) / 3, jnp.float32(0.3)
    told = te.explain(te.grad(te.adjoint(march, save=15 * STATE)), u, c).loops[0].reason
    assert told == (
        "states before 14 of 101 steps are kept at a time, 3,840 bytes; 86 steps computed again in the backward pass"
    )
    assert not te.explain(te.grad(te.adjoint(march, save=1 << 24)), u, c).loops


def test_a_linear_step_keeps_nothing() -> None:
    def linear(u: Any, c: Any) -> Any:
        return jnp.sum(lax.fori_loop(0, 101, lambda n, u: 0.9 * u + 0.1 * jnp.roll(u, 1), u))

    code = jax.jit(jax.grad(te.adjoint(linear, save=200 * 8 * 8 * 4))).lower(jnp.ones((8, 8)), 1.0).compile()
    assert code.memory_analysis().temp_size_in_bytes < 8 * STATE


@pytest.mark.parametrize(("steps", "states"), [(1000, 30), (7, 3), (100, 2), (999, 30), (5, 9)])
def test_slots(steps: int, states: int) -> None:
    """No more states than there is room for, but as many as eight times the steps need."""
    slots = slots_for(steps, states)
    assert slots < steps
    assert (
        slots == states - 1
        or slots == steps - 1
        or (slots > states - 1 and computed_again(steps, slots - 1) > steps)
    )
    assert computed_again(steps, slots) <= 8 * steps


@pytest.mark.parametrize("save", [0, -1, True, "nothing", 1.5])
def test_bad_budgets(save: Any) -> None:
    with pytest.raises(te.ArgumentError, match="number of bytes for the states of each loop"):
        te.adjoint(march, save=save)


def test_both_ways_of_choosing() -> None:
    with pytest.raises(te.ArgumentError, match="either tune= or save="):
        te.adjoint(march, save=100, tune=(jnp.ones((8, 8)), 1.0))
    again = te.adjoint(te.adjoint(march), save=15 * STATE)
    assert te.explain(te.grad(again), jnp.ones((8, 8)), jnp.float32(1)).loops

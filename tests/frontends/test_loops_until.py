"""Loops whose length is data under ``te.adjoint(f, save=...)``: values beside jax.grad of a scan of as many steps, what is held, bad input."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te
from tests.agreement import QUICKEST

LENGTHS = 0, 1, 33
STATE = 8 * 5  # bytes, in double precision


def settle(x: Any, w: Any, n: Any) -> Any:
    def body(s: Any) -> Any:
        return s[0] + 1.0, jnp.sin(w * s[1]) + 0.3 * jnp.roll(s[1], 1)

    return jnp.sum(lax.while_loop(lambda s: s[0] < n, body, (0.0, x))[1] ** 2)


def settled(x: Any, w: Any, n: int) -> Any:
    def body(s: Any, _: None) -> Any:
        return jnp.sin(w * s) + 0.3 * jnp.roll(s, 1), None

    return jnp.sum(lax.scan(body, x, None, length=n)[0] ** 2)


ORDERS = {
    "reverse": lambda f, x, w, n: jax.grad(f, (0, 1))(x, w, n),
    "forward": lambda f, x, w, n: jax.jvp(lambda x: f(x, w, n), (x,), (jnp.cos(x),)),
    "forward over reverse": lambda f, x, w, n: jax.jvp(
        lambda x, w: jax.grad(f, (0, 1))(x, w, n), (x, w), (jnp.cos(x), w)
    ),
    "each of several": lambda f, x, w, n: jax.vmap(jax.grad(f), (0, None, None))(
        jnp.stack([x, jnp.cos(x)]), w, n
    ),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("states", [1, 12])
def test_derivatives_beside_those_of_a_scan(states: int) -> None:
    x, w = jnp.asarray(np.random.default_rng(0).normal(size=5)), jnp.asarray(0.9)
    own = te.adjoint(settle, save=states * STATE)
    every = jax.jit(
        lambda x, w, n: [order(own, x, w, n) for order in ORDERS.values()], compiler_options=QUICKEST
    )
    expected = jax.jit(
        lambda x, w: [[order(settled, x, w, n) for order in ORDERS.values()] for n in LENGTHS],
        compiler_options=QUICKEST,
    )(x, w)
    for n, wanted in zip(LENGTHS, expected, strict=True):
        for a, b in zip(*map(jax.tree.leaves, (every(x, w, float(n)), wanted)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_what_is_held_and_told() -> None:
    x, n = jnp.ones((32, 32)), 1000.0
    own = te.adjoint(settle, save=30 * 4 * 32 * 32)
    code = jax.jit(jax.grad(own), compiler_options=QUICKEST).lower(x, 0.9, n).compile()
    assert code.memory_analysis().temp_size_in_bytes < 33 * 4 * 32 * 32
    (told,) = te.explain(te.grad(own), x, 0.9, n).loops
    assert told.reason.startswith(
        "a number of steps that is data: 8 states are kept at a distance that doubles when they are all there"
    )


def test_of_several_loops_at_once_and_twice_in_reverse_the_error_is_that_of_jax() -> None:
    own, x = te.adjoint(settle, save=30 * STATE), jnp.ones((2, 5))
    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.grad(lambda x: jax.vmap(own, (0, None, None))(x, 0.9, 3.0).sum())(x)
    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.grad(lambda x: jax.grad(own)(x, 0.9, 3.0).sum())(x[0])

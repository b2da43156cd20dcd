"""Functions of arrays within definitions under every mode: beside the same in plain JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((3, 3)).astype("f"), RNG.standard_normal(3).astype("f")


def solve(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(a + 4 * jnp.eye(3), b)


@te.function
def solved(a, b):
    y = te.extern((3,), solve, [a, b], "y")
    return te.compute((3,), lambda i: te.tanh(y[i]), "z")


def solved_jax(a: Any, b: Any) -> Any:
    return jnp.tanh(solve(a, b))


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: jnp.sum(f(a, b) ** 2)


def per_example(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: jax.vmap(jax.grad(loss(f), (0, 1)), (0, None))(jnp.stack([a, 2 * a]), b)


MODES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jvp": lambda f: lambda *args: jax.jvp(f, args, args),
    "hessian": lambda f: jax.hessian(loss(f)),
    "jvp of vmap of grad": lambda f: lambda *args: jax.jvp(per_example(f), args, args),
    "jvp of jvp": lambda f: lambda *args: jax.jvp(lambda *a: jax.jvp(f, a, a), args, args),
}


@pytest.mark.parametrize("mode", MODES)
def test_as_plain_jax(mode: str) -> None:
    found, expected = MODES[mode](solved)(A, B), MODES[mode](solved_jax)(A, B)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-3, 1e-4), found, expected)


def test_forward_mode_of_what_has_no_reverse_mode() -> None:
    def thrice(x: Any) -> Any:
        return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))[1]

    fn = te.function(lambda x: te.extern((3,), thrice, [x], "y") * 2)
    plain = lambda x: 2 * jnp.sin(jnp.sin(jnp.sin(x)))  # noqa: E731
    np.testing.assert_allclose(jax.jvp(fn, (B,), (B,))[1], jax.jvp(plain, (B,), (B,))[1], rtol=1e-5)


def test_a_backward_function_alone_has_no_forward_mode_but_is_differentiated_again() -> None:
    @jax.custom_vjp
    def square(x: Any) -> Any:
        return x**2

    square.defvjp(lambda x: (square(x), x), lambda x, ct: (2 * x * ct,))
    fn = te.function(lambda x: te.extern((3,), square, [x], "y") * 2)
    np.testing.assert_allclose(jax.jacrev(jax.grad(lambda x: fn(x).sum()))(B), 4 * np.eye(3), rtol=1e-5)
    with pytest.raises(te.DifferentiationError, match="defjvp"):
        jax.jvp(fn, (B,), (B,))


def test_a_tangent_rule_alone_is_the_reverse_mode_too() -> None:
    """Not the derivative that the forward function has in JAX."""
    rule = lambda primals, tangents: (jnp.sin(primals[0]), 3 * tangents[0])  # noqa: E731
    fn = te.function(
        lambda x: te.compute((3,), lambda i: te.sin(x[i]), "y"),
        override=lambda y, x: {y: te.array_gradient([x], jnp.sin, jvp=rule)},
    )
    assert jax.jvp(fn, (B,), (jnp.ones(3),))[1].tolist() == [3, 3, 3]
    assert jax.vjp(fn, B)[1](jnp.ones(3))[0].tolist() == [3, 3, 3]


def test_named_residuals_of_a_function_that_is_differentiated_twice() -> None:
    @te.function(save=["h"])
    def fn(x):
        h = te.compute((3,), lambda i: te.exp(x[i]), "h")
        return te.compute((3,), lambda i: te.sin(h[i]) * h[i], "y")

    plain = lambda x: jnp.sum(jnp.sin(jnp.exp(x)) * jnp.exp(x))  # noqa: E731
    found = jax.jvp(jax.grad(lambda x: fn(x).sum()), (B,), (B,))
    np.testing.assert_allclose(found, jax.jvp(jax.grad(plain), (B,), (B,)), rtol=1e-4)

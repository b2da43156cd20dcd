"""Recurrent networks in ``scan``: gradients of matrices as one product over all steps, beside jax.grad, under every transformation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

N = 32


def rnn(x: Any, w: Any, v: Any, b: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = jnp.tanh(row @ w + h @ v + b)
        return h, h

    return lax.scan(step, jnp.zeros_like(x[0]), x)[1]


def gru(x: Any, w: Any, v: Any, b: Any) -> Any:
    """A matrix at two places, one of them transposed, and products of products of the state."""

    def step(h: Any, row: Any) -> Any:
        z = jax.nn.sigmoid(jnp.einsum("bi,io->bo", row, w) + h @ v)
        n = jnp.tanh((z * h) @ v.T + b)
        return (1 - z) * h + z * n @ w, z

    return lax.scan(step, x[0], x[1:], reverse=True)


def counted(x: Any, w: Any, v: Any, b: Any) -> Any:
    """Integers in the state, and a matrix that is used elsewhere too."""

    def body(n: Any, h: Any) -> Any:
        return jnp.sin(h @ w) + n * jnp.sum(w) * 1e-3 + b

    return lax.fori_loop(0, 9, body, x[0]), v


def sums(x: Any, w: Any, v: Any, b: Any) -> Any:
    """Two products of the state in one sum, and rows that go into it as they are."""

    def step(state: Any, row: Any) -> Any:
        h, c = state
        h = h @ w + (c @ v + row)
        return (jnp.tanh(h), jnp.cos(c)), (h * b, jnp.argmax(h))

    (h, _), (ys, places) = lax.scan(step, (x[0], x[1]), x, unroll=2)
    return h, ys, places


FUNCTIONS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (rnn, gru, counted, sums)}


@pytest.fixture
def args(rng: np.random.Generator) -> tuple[Any, ...]:
    shapes = (10, 2, N), (N, N), (N, N), (N,)
    return tuple(jnp.asarray(0.2 * rng.normal(size=shape), "float32") for shape in shapes)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    def of(*args: Any) -> Any:
        leaves = jax.tree.leaves(f(*args))
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in leaves if leaf.dtype == args[0].dtype)

    return of


def close(found: Any, expected: Any) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * max(1.0, float(jnp.abs(b).max())))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_jax(name: str, args: tuple[Any, ...]) -> None:
    f = total(FUNCTIONS[name])
    raised = te.adjoint(f)
    assert te.explain(raised, *args).loops
    found = jax.jit(jax.value_and_grad(raised, (0, 1, 2, 3)))(*args)
    close(found, jax.jit(jax.value_and_grad(f, (0, 1, 2, 3)))(*args))
    for number in (1, 3):
        close(jax.grad(raised, number)(*args), jax.grad(f, number)(*args))


@pytest.mark.parametrize("name", ["rnn", "gru"])
def test_transformations(name: str, args: tuple[Any, ...]) -> None:
    f = total(FUNCTIONS[name])
    raised, (x, w, v, b) = te.adjoint(f), args
    close(jax.jvp(raised, args, args[::1]), jax.jvp(f, args, args))
    second = [jax.grad(lambda w, g=g: jnp.sum(jnp.cos(jax.grad(g, 1)(x, w, v, b))))(w) for g in (raised, f)]
    close(*second)
    many = jnp.stack([w, 2 * w])
    close(*(jax.vmap(jax.grad(g, 1), (None, 0, None, None))(x, many, v, b) for g in (raised, f)))
    close(jax.grad(jax.checkpoint(raised), 1)(*args), jax.grad(f, 1)(*args))


def steps(f: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    """The equations in the loops of a gradient."""
    jaxpr = jax.make_jaxpr(jax.grad(f, (1, 2)))(*args)
    return [e for s in jaxpr.eqns if s.primitive.name == "scan" for e in s.params["jaxpr"].jaxpr.eqns]


def test_no_step_adds_to_a_matrix(args: tuple[Any, ...]) -> None:
    def added(f: Callable[..., Any]) -> int:
        return sum(
            e.primitive.name in ("add", "add_any") and e.outvars[0].aval.shape == (N, N)
            for e in steps(f, args)
        )

    f = total(rnn)
    assert added(f) == 2 and added(te.adjoint(f)) == 0


def test_products_of_rows_are_taken_before_the_loop(args: tuple[Any, ...]) -> None:
    def products(f: Callable[..., Any]) -> int:
        return sum(e.primitive.name == "dot_general" for e in steps(f, args))

    f = total(rnn)
    assert products(f) == 5 and products(te.adjoint(f)) == 2


def test_small_matrices_and_short_loops_stay(args: tuple[Any, ...]) -> None:
    x, w, v, b = args
    assert not te.explain(te.adjoint(total(rnn)), x[:4], w, v, b).loops
    assert not te.explain(te.adjoint(total(rnn)), x[..., :4], w[:4, :4], v[:4, :4], b[:4]).loops


@pytest.mark.parametrize("f", [rnn, gru])
def test_recurrences_of_many_rows_stay(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Keeping sixteen rows a step takes longer than adding to the gradient of their matrix."""
    x, *rest = args
    assert te.explain(te.adjoint(total(f)), x, *rest).loops
    assert not te.explain(te.adjoint(total(f)), jnp.repeat(x, 8, 1), *rest).loops

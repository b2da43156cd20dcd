"""Slopes through which no derivative flows are not guarded, nor those of rows of which a mask takes an element each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxte as te

where = jnp.where
KNOTS = np.linspace(0, 1, 12).astype("float32") ** 2
COUNTS = np.array([0, 2, 3, 0, 1, 4], "int32")
ROWS = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")


def inverse(x: Any) -> Any:
    return where(x == 0, 0.0, 1 / x)


def interpolated(q: Any) -> Any:
    """Between knots that are found by data: their distances have no derivative."""
    n = jnp.clip(jnp.searchsorted(KNOTS, q), 1, 11)
    low, high = jnp.asarray(KNOTS)[n - 1], jnp.asarray(KNOTS)[n]
    return jnp.sum(((q - low) * inverse(high - low)) ** 2)


def means(x: Any, counts: Any = COUNTS) -> Any:
    return jnp.sum((x * inverse(jnp.asarray(counts).astype("float32"))[:, None]) ** 2)


def detached(x: Any) -> Any:
    scale = lax.stop_gradient(jnp.max(jnp.abs(x), 1, keepdims=True))
    return jnp.sum(jnp.sin(x * where(scale > 0, lax.rsqrt(scale), 1.0)))


def in_a_loop(x: Any) -> Any:
    """The counts are an argument of the body, as the rows are."""

    def turn(total: Any, given: Any) -> Any:
        row, count = given
        return total + jnp.sum(row * inverse(count)), row

    return jnp.sum(jnp.square(lax.scan(turn, 0.0, (x, COUNTS.astype("float32")))[0]))


def in_a_branch(x: Any) -> Any:
    return lax.cond(jnp.sum(x) > 0, lambda x, n: jnp.sum(x * inverse(n)), lambda x, n: jnp.sum(x * n), x, COUNTS[:, None].astype("float32"))  # fmt: skip


def of_experts(x: Any) -> Any:
    """The weights of the expert that is chosen: one of each row."""
    chosen = jax.nn.one_hot(jnp.argmax(x, -1), 5)
    return jnp.sum(jnp.square(chosen * jnp.log(jnp.sum(x * x, -1, keepdims=True)) * x))


def of_the_best(x: Any) -> Any:
    _, best = lax.top_k(x, 2)
    taken = (best[:, 1:] == jnp.arange(5)).astype("float32")
    return jnp.sum(taken * jnp.sqrt(jnp.sum(x * x, -1))[:, None])


def of_columns(x: Any) -> Any:
    taken = (jnp.argmin(x, 0)[None] == jnp.arange(6)[:, None]).astype("float32")
    return jnp.sum(jnp.exp(jnp.sum(x, 0, keepdims=True)) * taken)


UNGUARDED = (interpolated, means, detached, in_a_loop, in_a_branch, of_experts, of_the_best, of_columns)


@pytest.mark.parametrize("f", UNGUARDED)
def test_there_is_no_guard(f: Callable[..., Any]) -> None:
    x = jnp.asarray(np.linspace(0.01, 0.99, 30) if f is interpolated else ROWS, "float32")
    assert not te.explain(te.grad(f), x).guarded
    np.testing.assert_allclose(te.grad(f)(x), jax.grad(f)(x), rtol=1e-6)


def many(x: Any) -> Any:
    return jnp.sum((jnp.abs(x) > 0.5).astype("float32"), 1, keepdims=True)


def after_a_product(x: Any) -> Any:
    """What a choice drops is a factor of what has a derivative before."""
    return jnp.sum(where(many(x) > 0, jnp.sin(x * (1 / many(x))), 0.0))


def after_a_sum(x: Any) -> Any:
    return jnp.sum(where(many(x) > 0, jnp.square(x - jnp.log(many(x))), 0.0))


def of_labels(x: Any) -> Any:
    """A label may be beyond the classes, and its row then takes nothing."""
    labels = jax.nn.one_hot(COUNTS * 2, 5)
    return jnp.sum(labels * jnp.sqrt(jnp.sum(x * x, -1, keepdims=True)))


def of_few(x: Any) -> Any:
    """The greatest of five columns may be none of the first three."""
    taken = jax.nn.one_hot(jnp.argmax(x, -1), 3)
    return jnp.sum(taken * jnp.sqrt(jnp.sum(x[:, :3] ** 2, -1, keepdims=True)))


@pytest.mark.parametrize("f", [after_a_product, after_a_sum, of_labels, of_few])
def test_what_a_derivative_meets_is_guarded(f: Callable[..., Any]) -> None:
    x = jnp.asarray(ROWS).at[5].set(jnp.asarray([0.0, 0.0, 0.0, 1.0, 0.5]) if f is of_few else 0.0)
    assert te.explain(te.grad(f), x).guarded
    assert not np.isfinite(jax.grad(f)(x)).all() and np.isfinite(te.grad(f)(x)).all()


@pytest.mark.parametrize("jitted", [False, True])
def test_what_a_function_around_is_differentiated_by_is_guarded(jitted: bool) -> None:
    """The scales have a derivative by way of the gradient, which has none by them."""
    inverse_of_positive = lambda a: where(a > 0, jnp.sqrt(a), 0.0)  # noqa: E731

    def of_gradient(a: Any) -> Any:
        gradient = te.grad(lambda x: jnp.sum(jnp.square(x * inverse_of_positive(a))))
        return jnp.sum((jax.jit(gradient) if jitted else gradient)(jnp.arange(1.0, 5.0)))

    a = jnp.asarray([0.0, 0.5, 0.0, 2.0])
    np.testing.assert_allclose(jax.grad(of_gradient)(a), where(a > 0, 2 * jnp.arange(1.0, 5.0), 0), rtol=1e-6)


def test_calls_are_looked_at_once() -> None:
    """A root in a call of which a choice around the call needs a part is guarded there, and one that is needed in whole is not."""
    root = jax.jit(lambda x: jnp.sqrt(x) * 2)
    x = jnp.asarray([0.0, 1.0, 4.0])
    chosen = te.grad(lambda x: jnp.sum(where(x > 0, root(x), 0.0)))
    np.testing.assert_allclose(chosen(x), [0.0, 1.0, 0.5])
    inside = te.grad(lambda x: jnp.sum(jax.jit(lambda x: where(x > 0, jnp.sqrt(x), 0.0))(x)))
    np.testing.assert_allclose(inside(x), [0.0, 0.5, 0.25])

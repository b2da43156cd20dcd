"""Sums along an axis on which a few arrays are stacked: values, slopes of both orders, and what is no stack any more."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te


def shifted(u: Any) -> list[Any]:
    p = jnp.pad(u, 1, mode="wrap")
    return [p[2:, 1:-1], p[:-2, 1:-1], p[1:-1, 2:], p[1:-1, :-2]]


def laplace(u: Any) -> Any:
    """As libraries write it for any number of dimensions: a component for each, and their sum."""
    n, s, e, w = shifted(u)
    return jnp.sum((jnp.stack([n, e], -1) + jnp.stack([s, w], -1) - 2 * jnp.stack([u, u], -1)) / 1.5, -1)


def wave(u: Any) -> Any:
    v = u
    for _ in range(4):
        v = v + 0.1 * laplace(u)
        u = u + 0.1 * v
    return jnp.sum(u**2)


def lengths(u: Any) -> Any:
    """Functions of what is stacked, a weight for each, and joined arrays of one position."""
    n, s, e, w = shifted(jnp.sin(u))
    moved = (
        jnp.concatenate([(n - s)[None], (e - w)[None], u[None]]) * jnp.array([1.0, 2.0, 0.5])[:, None, None]
    )
    return jnp.sum(jnp.sqrt(jnp.sum(moved**2 + jnp.broadcast_to(u, moved.shape), 0) + 9.0))


def chosen(u: Any) -> Any:
    """A sum along another axis, too, and a choice."""
    n, s, e, w = shifted(u)
    both = jnp.stack([n - e, s * w], 1)
    return jnp.sum(jnp.sum(jnp.where(both > 0, both, 0.1 * both) ** 2, (1, 2)) ** 2)


def of_halves(u: Any) -> Any:
    n, _, e, _ = shifted(u)
    return jnp.sum(jnp.stack([n, e], -1).astype("bfloat16").astype("float32") ** 2, -1).mean()


def weighed(u: Any) -> Any:
    """Nothing of it gains by its shifts; what is the same for all that is stacked has one position along the axis."""
    parts = jnp.stack([u * u, jnp.sin(u), jnp.exp(u)]) - u[None] * jnp.array([1.0, 2.0, 3.0])[:, None, None]
    return jnp.mean(jnp.tanh(jnp.sum((parts + jnp.cos(u)[None]) ** 2, 0)))


def read_elsewhere(u: Any) -> Any:
    n, s, e, w = shifted(u)
    both = jnp.stack([n - s, e - w], -1)
    return jnp.sum(jnp.sum(both**2, -1) ** 2) + jnp.sum(jnp.sin(both[::2]))


def greatest(u: Any) -> Any:
    """Of equal ones each has its part of the slope."""
    return jnp.sum(jnp.max(jnp.stack([u * u, jnp.sin(u), jnp.exp(u)]), 0))


def array(rows: int, columns: int) -> Any:
    return jnp.asarray(np.random.default_rng(0).standard_normal((rows, columns)), "float32")


def stacks(f: Any, u: Any) -> bool:
    """Whether a gradient has an array of one more dimension than what is given, of several positions."""
    text = jax.jit(jax.value_and_grad(f)).lower(u).as_text()
    return any("1" not in d for d in re.findall(r"tensor<(\d+)x(\d+)x(\d+)xf32>", text))


@pytest.mark.parametrize(
    ("function", "rows", "columns"),
    [(wave, 64, 60), (lengths, 160, 150), (chosen, 200, 180), (of_halves, 200, 180), (weighed, 160, 150)],
)
def test_what_is_made_of_a_stack_is_added_without_one(function: Any, rows: int, columns: int) -> None:
    u = array(rows, columns)
    raised = te.adjoint(function)
    assert stacks(function, u) and not stacks(raised, u)
    found, wanted = (jax.value_and_grad(f)(u) for f in (raised, function))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-4 * float(jnp.max(jnp.abs(wanted[1]))))


def test_second_derivatives_are_those_of_stacks() -> None:
    u = array(36, 30)
    direction = jnp.cos(jnp.arange(u.size, dtype="float32")).reshape(u.shape)
    raised = te.adjoint(lengths, everything=True)
    assert not stacks(raised, u)
    second = [jax.jvp(jax.grad(f), (u,), (direction,))[1] for f in (raised, lengths)]
    np.testing.assert_allclose(*second, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "rows", "columns"),
    [
        pytest.param(read_elsewhere, 160, 150, id="what is stacked is read as it is"),
        pytest.param(greatest, 160, 150, id="extrema, of which equal ones share"),
        pytest.param(weighed, 24, 30, id="small, and nothing is raised"),
    ],
)
def test_other_stacks_stay(function: Any, rows: int, columns: int) -> None:
    u = array(rows, columns)
    assert stacks(te.adjoint(function), u)
    np.testing.assert_allclose(te.grad(function)(u), jax.grad(function)(u), rtol=1e-4, atol=1e-5)
